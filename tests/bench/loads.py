"""What is run to be profiled. Each is kept busy by itself or by a client, and counts its own work.

    load.start(); rate = load.measure(seconds); load.pids; load.working_pids; load.stop()"""

import os
import re
import shutil
import socket
import time
import urllib.request

import programs


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_until(answers, what):
    for _ in range(200):
        try:
            return answers()
        except (OSError, ValueError):
            time.sleep(0.05)
    raise RuntimeError(f"{what} does not answer")


class Load:
    unit = "requests/s"

    def __init__(self, build):
        self.build = build
        self.pid = None

    @property
    def pids(self):
        """What to profile: all processes of the server."""
        return programs.process_tree(self.pid)

    @property
    def working_pids(self):
        return self.pids

    def count(self):
        """(time, work done so far)"""
        raise NotImplementedError

    def measure(self, seconds):
        begin_s, begin = self.count()
        time.sleep(seconds)
        end_s, end = self.count()
        return (end - begin) / (end_s - begin_s)

    def facts(self):
        return {}


class SwitchPairs(Load):
    """Four pairs of threads that bounce a byte over socket pairs, ten frames deep."""

    name, unit = "switches", "round trips/s"

    def start(self):
        self._child = programs.Child([os.path.join(self.build, "tests/bench/switch_pairs"), 4], output="lines")
        self._child.read_line()
        self.pid = self._child.pid
        self._rates = []

    def count(self):
        self._last = self._child.ask()
        return self._last["time_ns"] / 1e9, self._last["round_trips"]

    def measure(self, seconds):
        first = self._child.ask()
        time.sleep(seconds)
        last = self._child.ask()
        elapsed_s = (last["time_ns"] - first["time_ns"]) / 1e9
        self._rates.append((last["switches"] - first["switches"]) / elapsed_s)
        return (last["round_trips"] - first["round_trips"]) / elapsed_s

    def facts(self):
        """Of the fastest quarter of the measurements: those that nothing slowed."""
        rates = sorted(self._rates)
        return {"switches_per_second": round(rates[-max(len(rates) // 4, 1)]) if rates else None}

    def stop(self):
        self._child.stop()


class Pgbench(Load):
    """pgbench -S against PostgreSQL, 8 clients over TCP. Counts are those of pgbench, line by line."""

    name, unit = "pgbench", "transactions/s"

    def start(self):
        script = (
            '. "$0/examples/postgres.sh" || exit; trap postgres_stop EXIT; postgres_start || exit; '
            'echo "$POSTGRES_PID $POSTGRES_PORT $POSTGRES_PROGRAMS"; read -r _'
        )
        programs.find("pgbench")
        self._server = programs.Child(["bash", "-c", script, programs.ROOT], output="lines")
        line = self._server.read_line(60)
        if line is None:
            raise programs.Skip("PostgreSQL does not start")
        pid, port, folder = line.split(" ", 2)
        self.pid = int(pid)
        pgbench = os.path.join(folder, "pgbench")
        options = ["-h", "127.0.0.1", "-p", port, "-U", "stallgraph", "postgres"]
        programs.run([pgbench, "-i", "-q", "-s", 10, *options], stderr=-3)
        argv = [pgbench, "-S", "-n", "-c", 8, "-j", 2, "-T", 1000000, "-P", 1, *options]
        self._client = programs.Child(argv, output="errors")
        self._next()

    def _next(self):
        """(time, rate since the line before)"""
        while True:
            line = self._client.read_line()
            if line is None:
                raise RuntimeError("pgbench has ended")
            found = re.match(r"progress: ([\d.]+) s, ([\d.]+) tps", line)
            if found:
                return float(found.group(1)), float(found.group(2))

    def measure(self, seconds):
        self._client.drain()
        self._client._buffer = b""
        begin_s, _ = self._next()
        done, at_s = 0.0, begin_s
        for _ in range(max(round(seconds), 1)):
            now_s, rate = self._next()
            done += rate * (now_s - at_s)
            at_s = now_s
        return done / (at_s - begin_s)

    def stop(self):
        self._client.stop()
        self._server.stop(15)


class Redis(Load):
    """redis-benchmark -t get, 50 clients. Counts are the server's."""

    name, unit = "redis", "commands/s"

    def start(self):
        port = free_port()
        self._folder = programs.folder()
        argv = [programs.find("redis-server"), "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._server = programs.Child(argv, cwd=self._folder)
        self.pid = self._server.pid
        self._socket = wait_until(lambda: socket.create_connection(("127.0.0.1", port)), "redis-server")
        argv = [programs.find("redis-benchmark"), "-p", port, "-t", "get", "-c", 50, "-n", 2000000000, "-q"]
        self._client = programs.Child(argv)
        time.sleep(0.5)

    def count(self):
        self._socket.sendall(b"INFO stats\r\n")
        answer = b""
        while b"total_commands_processed" not in answer or not answer.endswith(b"\r\n"):
            answer += self._socket.recv(65536)
        return time.monotonic(), int(re.search(rb"total_commands_processed:(\d+)", answer).group(1))

    def stop(self):
        self._socket.close()
        self._client.stop()
        self._server.stop()


class Nginx(Load):
    """nginx with one worker, wrk with one thread and 50 connections, a page of 1 KiB. Counts are the server's."""

    name = "nginx"
    _configuration = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error;
events {{ worker_connections 256; }}
http {{
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
  uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
  server {{ listen 127.0.0.1:{port}; root {folder}/pages; location = /status {{ stub_status; }} }}
}}
"""

    def start(self):
        self._port = free_port()
        self._folder = programs.folder()
        os.chmod(self._folder, 0o755)
        os.mkdir(os.path.join(self._folder, "pages"))
        with open(os.path.join(self._folder, "pages", "index.html"), "w", encoding="ascii") as file:
            file.write("x" * 1024)
        configuration = os.path.join(self._folder, "nginx.conf")
        with open(configuration, "w", encoding="ascii") as file:
            file.write(self._configuration.format(folder=self._folder, port=self._port))
        argv = [programs.find("nginx", "/usr/sbin/nginx"), "-c", configuration]
        self._server = programs.Child(argv)
        self.pid = self._server.pid
        wait_until(self.count, "nginx")
        argv = [programs.find("wrk"), "-t", 1, "-c", 50, "-d", "100000s", f"http://127.0.0.1:{self._port}/"]
        self._client = programs.Child(argv)
        time.sleep(0.5)

    @property
    def working_pids(self):
        return self.pids[1:]

    def count(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/status", timeout=5) as answer:
            numbers = answer.read().split(b"requests", 1)[1].split()
        return time.monotonic(), int(numbers[2])

    def stop(self):
        self._client.stop()
        self._server.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


ALL = [SwitchPairs, Pgbench, Redis, Nginx]
