"""Tables on stdout, the same as JSON on request, and what they were measured on."""

import json
import os
import platform
import time


def machine():
    return {
        "kernel": platform.release(),
        "cpus": os.cpu_count(),
        "load_average": [round(x, 2) for x in os.getloadavg()],
        "time": time.strftime("%Y-%m-%d %H:%M:%S"),
    }


def describe(machine_then, machine_now):
    return (
        f"Linux {machine_now['kernel']}, {machine_now['cpus']} CPUs; load average "
        f"{machine_then['load_average'][0]} before, {machine_now['load_average'][0]} after (the load's own included)"
    )


def number(value, digits=3):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.{digits}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def show(title, columns, rows):
    """columns: (heading, key, digits); a row is a dict."""
    lines = [[heading for heading, _, _ in columns]]
    lines += [[number(row.get(key), digits) for _, key, digits in columns] for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    print(f"\n{title}")
    for index, line in enumerate(lines):
        cells = [line[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]
        print("  " + "  ".join(cells).rstrip())
        if index == 0:
            print("  " + "  ".join("-" * width for width in widths))
    print(flush=True)


def write_json(path, content):
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.write("\n")


def verdict(name, value, limit, at_least):
    """A row for what was to be reached."""
    if value is None:
        return {"what": name, "value": None, "limit": limit, "verdict": "not measured"}
    met = value >= limit if at_least else value <= limit
    return {"what": name, "value": value, "limit": f"{'>=' if at_least else '<='} {limit}", "verdict": "met" if met else "MISSED"}


def show_verdicts(rows):
    show("Aims", [("what", "what", 0), ("got", "value", 3), ("wanted", "limit", 3), ("", "verdict", 0)], rows)
