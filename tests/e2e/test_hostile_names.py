"""Names of the target hold any bytes: every format stays well-formed, and no frame becomes two."""

import os
import re

from harness import MS, check, check_close, check_share, test

HOSTILE = b'a;b<c>"&\n\xff d'
LONG = b"<" * 300 + b"&" * 100
FORMATS = "speedscope,folded,svg,pprof"


def hostile_program(t):
    t.need_program("objcopy")
    program = os.fsencode(t.path("hostile"))
    argv = [b"objcopy", b"--redefine-sym", b"hot_leaf=" + HOSTILE, b"--redefine-sym", b"middle=" + LONG]
    argv += [os.fsencode(t.workload_path("busy")), program]
    pid = os.fork()
    if pid == 0:
        try:
            os.execvp(argv[0], argv)
        finally:
            os._exit(127)
    _, status = os.waitpid(pid, 0)
    check(status == 0, "objcopy failed")
    return program


@test
def hostile_symbols_keep_every_format_whole(t):
    """Quotes, line breaks, separators, markup and bad UTF-8 in a symbol; 400 characters of markup in another."""
    target = t.start([hostile_program(t)])
    result = t.collect("-p", target.pid, "--kernel", "none", duration=2, formats_wanted=FORMATS)
    profile, folded, svg = result.profile, result.folded, result.svg
    on = profile.thread(target.pid).state("on-cpu")
    check_share("two frames below main", on.select(lambda s: depth_below_main(s) == 2), on, at_least=0.95)
    hostile = [name for name in on.names() if name.startswith("a;b<c>")]
    check(hostile == ['a;b<c>"&\n\ufffd d'], f"the name in JSON: {hostile}")
    flat = folded.state("on-cpu")
    two = flat.select(lambda s: depth_below_main(s) == 2)
    check_share("two frames below main, folded", two, flat, at_least=0.95)
    check_close("totals", folded.time(), profile.threads_total_ns(), absolute=2000)
    check_pprof(result.pprof, profile)
    on = result.pprof.state("on-cpu")
    check_share("two frames below main, pprof", on.select(lambda s: depth_below_main(s) == 2), on, at_least=0.95)
    labels = [frame.label() for frame in svg.frames]
    check("main" in labels, f"main is not drawn: {labels}")
    check(any(label.startswith("a;b<c>") for label in labels), f"the hostile name is not drawn: {labels}")


def check_pprof(pprof, profile):
    check(pprof.time() == profile.threads_total_ns(), f"pprof {pprof.time()}, speedscope {profile.threads_total_ns()}")


def depth_below_main(stack):
    return len(stack) - 1 - stack.index("main") if "main" in stack else -1


@test
def hostile_thread_names_keep_every_format_whole(t):
    """A comm with a space, a separator, a line break, bad UTF-8 and markup."""
    target = t.workload("odd_comm")
    result = t.collect("-p", target.pid, duration=2, formats_wanted=FORMATS)
    profile, folded, svg = result.profile, result.folded, result.svg
    for tid in (target.truth["tid"], target.truth["sleeper"]):
        thread = profile.thread(tid)
        check_close(f"thread {tid}", thread.without_gaps().time(), profile.duration_ns, relative=0.02)
    check(profile.thread(target.truth["tid"]).having("hot").time() > 0, "hot not seen")
    check(len(profile.threads) == 2, f"{len(profile.threads)} threads")
    check_close("totals", folded.time(), profile.threads_total_ns(), absolute=2000)
    check(svg.frames, "nothing is drawn")
    check_pprof(result.pprof, profile)
    check(not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", result.stderr), f"control bytes on stderr: {result.stderr!r}")


@test
def hostile_thread_names_one_by_one(t):
    """The same with --threads each, where the name itself is a frame."""
    target = t.workload("odd_comm")
    result = t.collect("-p", target.pid, "--threads", "each", duration=2, formats_wanted=FORMATS)
    groups = {stack[:2] for stack, _, _ in result.folded.samples if stack[0] != "[idle]"}
    check(groups and all(len(group) == 2 for group in groups), f"groups: {groups}")
    check(any(str(target.truth["tid"]) in name for group in groups for name in group), f"no tid in {groups}")
    check(result.folded.time() > 100 * MS, "little time")
    check(str(target.truth["tid"]) in result.pprof.by_label("tid"), f"tids {result.pprof.by_label('tid')}")
    check(result.svg.frames, "nothing is drawn")


@test
def hostile_executable_name(t):
    """The name of the program itself: it is a frame, a title and a part of the default file name."""
    program = t.copy_of("busy", 'x;y <b>"&\n..')
    target = t.start([program])
    result = t.collect("-p", target.pid, duration=1.5, formats_wanted=FORMATS)
    check(result.profile.thread(target.pid).having("main").time() > 0, "main not seen")
    check(all(len(stack) >= 2 for stack, _, _ in result.folded.samples), "a folded stack without its groups")
    check(result.svg.frames, "nothing is drawn")
    check_pprof(result.pprof, result.profile)
    folder = t.path("default")
    os.mkdir(folder)
    done = t.stallgraph("collect", "-p", target.pid, "-d", "0.3", cwd=folder)
    check(done.code in (0, 3), f"exit code {done.code}")
    names = os.listdir(folder)
    check(len(names) == 1 and names[0].endswith(".speedscope.json"), f"files: {names}")
    check(not re.search(r"[\x00-\x1f]", names[0]), f"control bytes in the file's name: {names}")
