"""Names of functions: from whatever file they come, and never from the wrong one."""

import os
import re
import subprocess
import time

from harness import MS, Skip, check, check_share, test

CHAIN = ("main", "middle", "hot_leaf")
LINKED = ("busy", "busy_no_pie", "busy_static", "busy_static_pie", "busy_lld", "busy_lld_no_pie", "busy_mold")


def on_cpu(profile, pid):
    return profile.thread(pid).state("on-cpu").sampled()


def run_tool(*argv):
    done = subprocess.run(argv, capture_output=True, check=False)
    check(done.returncode == 0, f"{argv[0]} failed: {done.stderr!r}")
    return done.stdout


@test
def every_way_of_linking_is_named(t):
    """PIE or not, static or not, by GNU ld, lld and mold: file offsets are no addresses."""
    targets = {}
    for program in LINKED:
        try:
            targets[program] = t.workload(program)
        except Skip as skip:
            print(f"not tried: {skip}")
    check("busy" in targets, "no program to try")
    pids = ",".join(str(target.pid) for target in targets.values())
    profile = t.collect("-p", pids, duration=4).profile
    for program, target in targets.items():
        on = on_cpu(profile, target.pid)
        check_share(program, on.with_chain(*CHAIN), on, at_least=0.98)


@test
def replaced_binary_keeps_its_names(t):
    """An upgrade moves another file over a running program: names come from the one that runs."""
    target = t.start([t.copy_of("busy", "srv")])
    os.rename(t.copy_of("other_busy", "new"), t.path("srv"))
    profile = t.collect("-p", target.pid, duration=2).profile
    on = on_cpu(profile, target.pid)
    check_share("named", on.with_chain(*CHAIN), on, at_least=0.98)
    wrong = [name for name in on.names() if name.startswith("wrong_")]
    check(not wrong, f"names of the new file: {wrong}")


@test
def binary_deleted_while_sampled_keeps_its_names(t):
    target = t.start([t.copy_of("busy", "srv")])
    collect = t.start_collect("-p", target.pid, "-d", 2)
    collect.wait_started()
    os.unlink(t.path("srv"))
    on = on_cpu(collect.finish().profile, target.pid)
    check_share("named", on.with_chain(*CHAIN), on, at_least=0.98)


@test
def deleted_binary_keeps_its_names(t):
    target = t.start([t.copy_of("busy", "srv")])
    os.unlink(t.path("srv"))
    on = on_cpu(t.collect("-p", target.pid, duration=2).profile, target.pid)
    check_share("named", on.with_chain(*CHAIN), on, at_least=0.98)


@test
def minidebuginfo_is_read(t):
    """A stripped program with .gnu_debugdata, as distributions ship them."""
    for tool in ("objcopy", "nm", "xz", "strip"):
        t.need_program(tool)
    program, full = t.copy_of("busy", "srv"), t.copy_of("busy", "full")
    symbols = run_tool("nm", "--format=posix", "--defined-only", full).decode().splitlines()
    with open(t.path("keep"), "w", encoding="ascii") as file:
        file.write("\n".join(line.split()[0] for line in symbols if line.split()[1] in "tT") + "\n")
    run_tool("objcopy", "--only-keep-debug", full, t.path("debug"))
    run_tool("objcopy", "-S", f"--keep-symbols={t.path('keep')}", t.path("debug"), t.path("mini"))
    run_tool("strip", "--strip-all", program)
    run_tool("xz", t.path("mini"))
    run_tool("objcopy", "--add-section", f".gnu_debugdata={t.path('mini.xz')}", program)
    check(b".symtab" not in run_tool("objdump", "-h", program), "the program is not stripped")
    target = t.start([program])
    on = on_cpu(t.collect("-p", target.pid, duration=2).profile, target.pid)
    check_share("named", on.with_chain(*CHAIN), on, at_least=0.95)


@test
def separate_debug_file_is_read(t):
    """A stripped program with a .gnu_debuglink to a file in .debug beside it."""
    for tool in ("objcopy", "strip"):
        t.need_program(tool)
    program = t.copy_of("busy", "srv")
    os.mkdir(t.path(".debug"))
    run_tool("objcopy", "--only-keep-debug", program, t.path(".debug/srv.debug"))
    run_tool("strip", "--strip-all", program)
    run_tool("objcopy", f"--add-gnu-debuglink={t.path('.debug/srv.debug')}", program)
    target = t.start([program])
    on = on_cpu(t.collect("-p", target.pid, duration=2).profile, target.pid)
    check_share("named", on.with_chain(*CHAIN), on, at_least=0.95)


@test
def stripped_program_is_module_and_offset(t):
    t.need_program("strip")
    program = t.copy_of("busy", "srv")
    run_tool("strip", "--strip-all", program)
    target = t.start([program])
    on = on_cpu(t.collect("-p", target.pid, duration=2).profile, target.pid)
    check_offsets_of_srv(on)


def check_offsets_of_srv(on):
    """Whole stacks of main, middle and hot_leaf without their names."""
    offset = re.compile(r"srv\+0x[0-9a-f]+")
    three = on.select(lambda stack: sum(offset.fullmatch(name) is not None for name in stack) >= 3)
    check_share("module+offset", three, on, at_least=0.95)
    wrong = on.names() & {*CHAIN, "wrong_root", "wrong_leaf"}
    check(not wrong, f"names from nowhere: {wrong}")


def write_bytes_at(path, offset, data):
    with open(path, "r+b") as file:
        file.seek(offset)
        file.write(data)


@test
def broken_section_headers_do_no_harm(t):
    """e_shoff points nowhere: the kernel runs it all the same, and so do its program headers."""
    program = t.copy_of("busy", "srv")
    write_bytes_at(program, 40, b"\xff" * 8)
    target = t.start([program])
    on = on_cpu(t.collect("-p", target.pid, duration=2).profile, target.pid)
    check_offsets_of_srv(on)


@test
def program_replaced_by_a_broken_file_does_no_harm(t):
    """Removed, and the first 1000 bytes of another program put there: what runs is still known by its own file."""
    target = t.start([t.copy_of("busy", "srv")])
    other = t.copy_of("other_busy", "new")
    os.truncate(other, 1000)
    os.rename(other, t.path("srv"))
    on = on_cpu(t.collect("-p", target.pid, duration=2).profile, target.pid)
    check(not [name for name in on.names() if name.startswith("wrong_")], f"wrong names: {on.names()}")
    check_share("named", on.with_chain(*CHAIN), on, at_least=0.95)


@test
def exec_starts_afresh(t):
    """One process, two programs: each half has its own names, and as much time as the kernel counted."""
    target = t.workload("exec_midway", t.workload_path("busy"))
    counters = t.counters(target.pid)
    collect = t.start_collect("-p", target.pid, "-d", 4)
    collect.wait_started()
    time.sleep(1)
    target.write_line()
    exec_wall_ns = target.read_line()["exec_wall_ns"]
    profile = collect.finish().profile
    counters.stop()
    on = profile.thread(target.pid).state("on-cpu")
    for part, begin_ns, end_ns in (
        (on.having("before_exec"), profile.start_wall_ns, exec_wall_ns),
        (on.having(*CHAIN), exec_wall_ns, profile.end_wall_ns),
    ):
        counters.check_on_cpu("named half", part.time(), target.pid, begin_ns, end_ns, absolute=50 * MS)
    check(not on.having("before_exec", "hot_leaf").samples, "a stack of both programs")
    runs = profile.thread(target.pid).runs()
    last_before_ns = max(start for start, _, stack in runs if "before_exec" in stack)
    check(last_before_ns <= profile.offset_of(exec_wall_ns) + 20 * MS, "the first program's names go on after the exec")


@test
def mangled_names_are_read(t):
    """C++ with the suffixes of gcc's optimizer, both Rust manglings; what no demangler reads stays as it is."""
    target = t.workload("mangled_names")
    on = on_cpu(t.collect("-p", target.pid, duration=3).profile, target.pid)
    names = on.having("main").names()
    for start, suffix in (("shop::checkout(int)", ".cold"), ("shop::refund(long)", ".isra.0.part.1")):
        found = [name for name in names if name.startswith(start)]
        check(len(found) == 1 and suffix in found[0], f"{start} with {suffix}: {found} of {names}")
    check("store::order::place" in names, f"Rust v0: {names}")
    check("store::order::cancel" in names, f"Rust legacy: {names}")
    check("_ZN4shopNOT_A_NAME" in names, f"undecodable: {names}")


@test
def cxx_names_are_read(t):
    """A real C++ program, with an exception in flight while a destructor burns."""
    target = t.workload("cxx_names")
    on = on_cpu(t.collect("-p", target.pid, duration=3).profile, target.pid)
    checkout = "shop::checkout(shop::pricing&, shop::basket const&)"
    for name in ("shop::flat_pricing<unsigned long>::total(int)", "shop::basket::operator()(int) const"):
        check(on.with_chain("main", checkout, name).samples, f"{name} not seen:\n{on.top()}")
    destructor = "shop::burns_at_unwind::~burns_at_unwind()"
    unwinding = on.having("main", checkout, destructor)
    check(unwinding.samples, f"{destructor} not seen:\n{on.top()}")
    check_share("whole", on.having("main", checkout), on, at_least=0.95)
