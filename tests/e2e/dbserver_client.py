"""Asks a running dbserver (4 workers) for everything it has: dbserver_client.py ADDRESS PID"""
import concurrent.futures
import http.client
import os
import random
import socket
import sys
import time

HOST, PORT = sys.argv[1].split(":")
PID = int(sys.argv[2])
PARALLEL = 40
QUERY_S = 0.05
WORKERS = 4


def check(condition, what):
    if not condition:
        sys.exit(f"FAIL: {what}")
    print(f"ok: {what}")


def get(path):
    connection = http.client.HTTPConnection(HOST, int(PORT), timeout=20)
    start = time.monotonic()
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, body, time.monotonic() - start


def raw(data, timeout_s=5):
    """Sends bytes, returns all that comes back until the server closes (b"" also for a reset)."""
    with socket.create_connection((HOST, int(PORT)), timeout=timeout_s) as s:
        got = b""
        try:
            s.sendall(data)
            while piece := s.recv(65536):
                got += piece
        except (ConnectionResetError, BrokenPipeError):
            pass
        return got


def stats():
    return {key: int(value) for key, value in (line.split() for line in get("/stats")[1].splitlines())}


def parallel(path):
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as clients:
        answers = list(clients.map(lambda _: get(path), range(PARALLEL)))
    check(all(status == 200 for status, _, _ in answers), f"{PARALLEL} parallel requests of {path} are answered")
    return time.monotonic() - start


def check_paths():
    at_least_s = {"/time": 0.05, "/async-time": 0.05, "/mixed": 0.06, "/sleep": 0.05, "/cpu": 0.005, "/lock": 0.002}
    for path, minimum_s in at_least_s.items():
        status, body, took_s = get(path)
        check(status == 200 and body.startswith(path) and took_s >= minimum_s, f"{path}: {status} in {took_s:.3f} s")
    check(get("/none")[0] == 404, "an unknown path is 404")
    check(get("/time?x=1")[0] == 200, "what follows ? is ignored")


def check_threads():
    # A set: a sanitizer may have a thread of its own, under the program's name.
    names = {open(f"/proc/{PID}/task/{tid}/comm").read().strip() for tid in os.listdir(f"/proc/{PID}/task")}
    expected = {"dbserver", "acceptor", "pg-events"} | {f"worker-{i}" for i in range(1, WORKERS + 1)}
    check(names == expected, f"threads are {', '.join(sorted(names))}")


def check_starvation():
    parallel("/async-time")  # opens the connections
    async_s = parallel("/async-time")
    sync_s = parallel("/time")
    lower_bound_s = PARALLEL / WORKERS * QUERY_S
    check(sync_s >= lower_bound_s, f"/time starves the pool: {sync_s:.2f} s, no less than {lower_bound_s:.2f} s")
    check(async_s < sync_s * 0.7, f"/async-time does not: {async_s:.2f} s")


def check_keep_alive():
    reply = raw(b"GET /cpu HTTP/1.1\r\n\r\n" b"GET /sleep HTTP/1.1\r\n\r\n" b"GET /lock HTTP/1.0\r\n\r\n")
    check(reply.count(b"HTTP/1.1 200") == 3, "pipelined requests are answered on one connection")
    order = [reply.find(path) for path in (b"/cpu:", b"/sleep:", b"/lock:")]
    check(order == sorted(order) and order[0] >= 0, "in their order")


def check_garbage():
    refused = {
        b"\r\n\r\n": b"400", b"GET\r\n\r\n": b"400", b"GET / HTTP/9.9\r\n\r\n": b"400",
        b"GET nothing HTTP/1.1\r\n\r\n": b"400", b"POST /time HTTP/1.1\r\n\r\n": b"405",
        b"GET /" + b"a" * 200 + b" HTTP/1.1\r\n\r\n": b"414",
        b"GET /cpu HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc": b"413",
        b"GET /cpu HTTP/1.1\r\n" + b"x" * 4077: b"431",
    }
    for data, status in refused.items():
        reply = raw(data)
        check(reply.startswith(b"HTTP/1.1 " + status), f"{data[:24]!r} is refused with {status.decode()}")
    noise = random.Random(1)
    for _ in range(200):
        raw(noise.randbytes(noise.randrange(1, 6000)) + b"\r\n\r\n")
    for _ in range(50):  # clients that go away while their request is in flight
        with socket.create_connection((HOST, int(PORT))) as s:
            s.sendall(b"GET /async-time HTTP/1.1\r\n\r\nGET /time HTTP/1.1\r\n\r\n")
    check(get("/cpu")[0] == 200, "still answers after noise and clients that vanish")


def check_stats():
    deadline_s = time.monotonic() + 10
    counters = stats()
    while (counters["workers_busy"] or counters["queued"] or counters["async_busy"]) and time.monotonic() < deadline_s:
        time.sleep(0.05)
        counters = stats()
    check(counters["workers"] == WORKERS and counters["requests"] > 100, f"/stats counts: {counters}")
    check(not (counters["workers_busy"] or counters["queued"] or counters["async_busy"]), "nothing is left over")
    check(1 <= counters["async_connections"] <= 60, "asynchronous connections are bounded")


check_paths()
check_threads()
check_keep_alive()
check_starvation()
check_garbage()
check_stats()
