#!/usr/bin/env python3
"""Writes the tables of docs/performance.md and the plots docs/images/load-*.svg from the results of `make load`.

It reads load.json and, if it is there, load-kwok.json in target/bench, or in the folder LOAD_RESULTS. LOAD_PAGE is another
page, with the plots in `images` beside it. The same input gives the same output, byte for byte. It needs nothing but Python.
"""

import json
import math
import os
import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(os.environ.get("LOAD_RESULTS", ROOT / "target/bench"))
PAGE = Path(os.environ.get("LOAD_PAGE", ROOT / "docs/performance.md"))
IMAGES = PAGE.parent / "images"

WIDTH, LEFT, RIGHT, TOP, BOTTOM = 760, 70, 20, 44, 52
TEXT, GRID, LIMIT, IDLE = "#333333", "#dddddd", "#c0392b", "#f0f0f0"
COLOURS = ["#1f5f99", "#e08214", "#4d9a4d", "#8e5ea2", "#7f7f7f", "#c2a100", "#3ba3a3", "#b5578e", "#a0612d", "#5b7fbf"]


def number(value):
    """A readable number: thousands with a comma, and only significant decimals."""
    if value is None:
        return "–"
    if value == int(value):
        return f"{int(value):,}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def share(value):
    """The number of some requests for each Instance."""
    return "< 0.01" if 0 < value < 0.005 else number(round(value, 2))


def at(value):
    """A coordinate."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def ticks(largest, count=6):
    """Round numbers from 0 up to the first one that is not below `largest`."""
    if largest <= 0:
        return [0, 1]
    rough = largest / count
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    return [round(n * step, 9) for n in range(math.ceil(round(largest / step, 9)) + 1)]


class Drawing:
    """An SVG picture."""

    def __init__(self, title, height):
        self.title, self.height, self.parts = title, height, []
        self.text(WIDTH / 2, 20, title, anchor="middle", size=15, weight="bold")

    def text(self, x, y, text, anchor="start", size=12, colour=TEXT, weight="normal", turn=False):
        turned = f' transform="rotate(-90 {at(x)} {at(y)})"' if turn else ""
        bold = f' font-weight="{weight}"' if weight != "normal" else ""
        self.parts.append(
            f'<text x="{at(x)}" y="{at(y)}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"{bold}{turned}>'
            f"{escape(text)}</text>"
        )

    def line(self, x1, y1, x2, y2, colour=GRID, width=1, dash=""):
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{at(x1)}" y1="{at(y1)}" x2="{at(x2)}" y2="{at(y2)}" stroke="{colour}" stroke-width="{width}"'
            f"{dashed}/>"
        )

    def rectangle(self, x, y, width, height, colour):
        self.parts.append(
            f'<rect x="{at(x)}" y="{at(y)}" width="{at(width)}" height="{at(height)}" fill="{colour}"/>'
        )

    def curve(self, points, colour):
        path = " ".join(f"{at(x)},{at(y)}" for x, y in points)
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-linejoin="round"/>'
        )

    def dot(self, x, y, colour, hollow=False):
        inside = "white" if hollow else colour
        self.parts.append(f'<circle cx="{at(x)}" cy="{at(y)}" r="4" fill="{inside}" stroke="{colour}" stroke-width="2"/>')

    def legend(self, entries, x, y):
        """Names with their colours, from `y` downwards."""
        for row, (name, colour) in enumerate(entries):
            self.rectangle(x, y + 18 * row - 9, 12, 12, colour)
            self.text(x + 18, y + 18 * row + 1, name)

    def save(self, name):
        IMAGES.mkdir(parents=True, exist_ok=True)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{self.height}" '
            f'viewBox="0 0 {WIDTH} {self.height}" font-family="sans-serif" role="img">\n<title>{escape(self.title)}</title>\n'
            f'<rect width="{WIDTH}" height="{self.height}" fill="white"/>\n'
        )
        (IMAGES / name).write_text(head + "\n".join(self.parts) + "\n</svg>\n", encoding="utf-8")


class Panel:
    """The area of a drawing between two axes; `x_axis` or `columns` draws the horizontal one."""

    def __init__(self, drawing, top, bottom, y_title, y_largest, y_ticks=None, right=WIDTH - RIGHT, logarithmic=False):
        self.drawing, self.top, self.bottom, self.right = drawing, top, bottom, right
        self.logarithmic = logarithmic
        self.ticks = y_ticks or ticks(y_largest)
        for tick in self.ticks:
            drawing.line(LEFT, self.y(tick), right, self.y(tick))
            drawing.text(LEFT - 8, self.y(tick) + 4, number(tick), anchor="end")
        drawing.text(18, (top + bottom) / 2, y_title, anchor="middle", turn=True)
        drawing.line(LEFT, top, LEFT, bottom, TEXT)
        drawing.line(LEFT, bottom, right, bottom, TEXT)

    def y(self, value):
        low, high = self.ticks[0], self.ticks[-1]
        if self.logarithmic:
            part = (math.log10(max(value, low)) - math.log10(low)) / (math.log10(high) - math.log10(low))
        else:
            part = (value - low) / (high - low)
        return self.bottom - part * (self.bottom - self.top)

    def x_axis(self, title, largest, labelled=True):
        """An axis with numbers from 0 to the largest one."""
        self.largest = largest
        for tick in (tick for tick in ticks(largest) if tick <= largest):
            self.drawing.line(self.x(tick), self.bottom, self.x(tick), self.bottom + 5, TEXT)
            if labelled:
                self.drawing.text(self.x(tick), self.bottom + 20, number(tick), anchor="middle")
        if labelled:
            self.drawing.text((LEFT + self.right) / 2, self.bottom + 42, title, anchor="middle")

    def x(self, value):
        return LEFT + value / self.largest * (self.right - LEFT)

    def columns(self, names, title):
        """A column for each name; returns the middle of each, and their width."""
        width = (self.right - LEFT) / len(names)
        middles = [LEFT + width * (n + 0.5) for n in range(len(names))]
        for name, middle in zip(names, middles):
            self.drawing.text(middle, self.bottom + 20, name, anchor="middle")
        self.drawing.text((LEFT + self.right) / 2, self.bottom + 42, title, anchor="middle")
        return middles, width


def plot_memory(runs):
    """Memory over the number of Instances."""
    height = 400
    drawing = Drawing("Memory of the daemon (RSS)", height)
    steps = [step for run in runs for step in run["steps"]]
    limit = runs[0]["limit_mib"]
    is_limited = runs[0]["start"]["tenants"] == limit["tenants"] and limit["instances"] <= steps[-1]["instances"]
    largest = max(step["peak_mib"] for step in steps)
    panel = Panel(drawing, TOP, height - BOTTOM, "MiB", max(largest, limit["mib"] if is_limited else 0))
    panel.x_axis("Instances", max(step["instances"] for step in steps))
    if is_limited:
        y = panel.y(limit["mib"])
        drawing.line(LEFT, y, panel.x(limit["instances"]), y, LIMIT, 2, "6 4")
        drawing.line(panel.x(limit["instances"]), y, panel.x(limit["instances"]), panel.bottom, LIMIT, 2, "6 4")
        text = f"limit: {number(limit['mib'])} MiB ({number(limit['instances'])} Instances, {limit['tenants']} Tenants)"
        drawing.text(LEFT + 6, y - 7, text, colour=LIMIT)
    series = [("peak so far", COLOURS[1], lambda step: step["peak_mib"])]
    series.append(("after the idle time", COLOURS[0], lambda step: step["idle"]["memory_mib"]))
    for run in runs:
        for _, colour, value in series:
            points = [(step["instances"], value(step)) for step in run["steps"]]
            if not run["is_simulated"]:
                start = "peak_mib" if colour == COLOURS[1] else "memory_mib"
                points.insert(0, (0, run["start"][start]))
            places = [(panel.x(x), panel.y(y)) for x, y in points]
            drawing.curve(places, colour)
            labelled = LEFT - 100
            for (x, y), (_, value_there) in zip(places, points):
                drawing.dot(x, y, colour, hollow=run["is_simulated"])
                # Points that are too close together are only in the table.
                if x - labelled >= 40:
                    labelled = x
                    beside = (0, "middle") if x > LEFT + 20 and x < panel.right - 20 else (-8, "end")
                    beside = (8, "start") if x <= LEFT + 20 else beside
                    above = -9 if colour == COLOURS[1] else 18
                    drawing.text(x + beside[0], y + above, number(value_there), beside[1], 11, colour)
    names = [(name, colour) for name, colour, _ in series]
    drawing.legend(names, WIDTH - 270, panel.bottom - 40)
    if len(runs) > 1:
        drawing.text(WIDTH - 270, panel.bottom - 58, "hollow: pods and machines run (kwok)")
    drawing.save("load-memory.svg")


def plot_time(run):
    """Memory and processor time over the whole run."""
    height = 560
    drawing = Drawing("The daemon over time", height)
    samples, minute = run["samples"], 60
    end = samples[-1][0]
    upper = Panel(drawing, TOP + 16, 260, "memory (RSS), MiB", max(sample[2] for sample in samples))
    lower = Panel(drawing, 290, height - BOTTOM, "processor time so far, s", max(sample[3] for sample in samples))
    for panel in (upper, lower):
        panel.x_axis("minutes since the start; grey: nothing changes", end / minute, labelled=panel is lower)
        phases = run["phases"] + [["", end]]
        for (name, begin), (_, until) in zip(phases, phases[1:]):
            if "idle" in name:
                x = panel.x(begin / minute)
                drawing.rectangle(x, panel.top, panel.x(until / minute) - x, panel.bottom - panel.top, IDLE)
            elif panel is upper and "Instances" in name:
                x = panel.x(begin / minute)
                drawing.line(x, panel.top - 6, x, panel.bottom, TEXT, 1, "2 3")
                drawing.text(x + 3, panel.top - 4, name.split(" ")[0], size=11)
    for panel, column, colour in ((upper, 2, COLOURS[0]), (lower, 3, COLOURS[1])):
        for tick in panel.ticks:
            drawing.line(LEFT, panel.y(tick), panel.right, panel.y(tick))
        drawing.curve([(panel.x(s[0] / minute), panel.y(s[column])) for s in samples], colour)
    drawing.save("load-time.svg")


def per_instance(step, what):
    return step["requests"].get(what, 0) / step["created"]


def kinds_of(runs):
    """The requests of all steps as `verb resource`, the most frequent first."""
    steps = [step for run in runs for step in run["steps"]]
    total = {}
    for step in steps:
        for what in step["requests"]:
            total[what] = total.get(what, 0) + per_instance(step, what)
    return sorted(total, key=lambda what: (-total[what], what))


def label(run, step):
    return f"{number(step['instances'])}{' (kwok)' if run['is_simulated'] else ''}"


def plot_requests(runs):
    """Requests for each Instance, by verb and kind."""
    height, shown = 440, len(COLOURS) - 1
    drawing = Drawing("Requests to the API server for each Instance", height)
    steps = [(run, step) for run in runs for step in run["steps"]]
    kinds = kinds_of(runs)
    largest = max(step["requests_per_instance"] for _, step in steps)
    panel = Panel(drawing, TOP, height - BOTTOM, "requests", largest, right=WIDTH - 240)
    middles, width = panel.columns([label(run, step) for run, step in steps], "Instances")
    for middle, (_, step) in zip(middles, steps):
        parts = [(colour, per_instance(step, what)) for what, colour in zip(kinds[:shown], COLOURS)]
        parts.append((COLOURS[shown], sum(per_instance(step, what) for what in kinds[shown:])))
        below = 0
        for colour, value in parts:
            y = panel.y(below + value)
            drawing.rectangle(middle - width * 0.3, y, width * 0.6, panel.y(below) - y, colour)
            below += value
        drawing.text(middle, panel.y(below) - 6, number(below), anchor="middle")
    names = list(zip(kinds[:shown], COLOURS))
    if len(kinds) > shown:
        names.append(("others", COLOURS[shown]))
    drawing.legend(names[::-1], WIDTH - 225, TOP + 10)
    drawing.save("load-requests.svg")


def plot_latency(runs):
    """The time until an Instance has its Ingress."""
    height = 400
    drawing = Drawing("From the acceptance of an Instance to its Ingress", height)
    steps = [(run, step) for run in runs for step in run["steps"]]
    bars = [
        ("one at a time: median", lambda step: step["alone"]["median_ms"]),
        ("one at a time: 95 %", lambda step: step["alone"]["late_ms"]),
        ("16 at a time: median", lambda step: step["latency"]["median_ms"]),
        ("16 at a time: 95 %", lambda step: step["latency"]["late_ms"]),
    ]
    values = [value for _, step in steps for _, of in bars if (value := of(step))]
    decades = range(math.floor(math.log10(0.8 * min(values))), math.ceil(math.log10(max(values))) + 1)
    panel = Panel(
        drawing, TOP, height - BOTTOM, "ms (logarithmic)", 0, [10**n for n in decades], WIDTH - 190, logarithmic=True
    )
    middles, width = panel.columns([label(run, step) for run, step in steps], "Instances")
    for middle, (_, step) in zip(middles, steps):
        for n, ((_, of), colour) in enumerate(zip(bars, COLOURS)):
            value = of(step)
            if value is None:
                continue
            x, y = middle + width * 0.8 * (n / len(bars) - 0.5), panel.y(value)
            drawing.rectangle(x, y, width * 0.18, panel.bottom - y, colour)
            drawing.text(x + width * 0.09, y - 5, f"{value:.0f}", anchor="middle", size=11)
    drawing.legend([(name, colour) for (name, _), colour in zip(bars, COLOURS)], WIDTH - 175, TOP + 10)
    drawing.save("load-latency.svg")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def times(latency):
    return f"{number(latency['median_ms'])} ms; {number(latency['late_ms'])} ms"


def steps_table(run):
    start, steps = run["start"], run["steps"]
    limit = run["limit_mib"]
    rows = [
        ("Instances created at once", lambda step: number(step["created"])),
        ("… accepted after", lambda step: f"{number(step['accepted_seconds'])} s"),
        ("… reconciled after", lambda step: f"{number(step['reconciled_seconds'])} s"),
        ("requests for each Instance", lambda step: number(step["requests_per_instance"])),
        ("… refused, in all", lambda step: number(sum(step["refused"].values()))),
        ("processor time", lambda step: f"{number(step['processor_seconds'])} s"),
        ("accepted → Ingress, 16 at a time: median; 95 %", lambda step: times(step["latency"])),
        ("accepted → Ingress, one at a time: median; 95 %", lambda step: times(step["alone"])),
        ("memory after the idle time", lambda step: f"{number(step['idle']['memory_mib'])} MiB"),
        ("… of which anonymous", lambda step: f"{number(step['idle']['anonymous_mib'])} MiB"),
        ("peak memory so far", lambda step: f"{number(step['peak_mib'])} MiB"),
    ]
    body = [[name] + [of(step) for step in steps] for name, of in rows]
    text = table(["Instances in all"] + [number(step["instances"]) for step in steps], body)
    before = (
        f"Before the first Instance, {number(start['tenants'])} Tenants and {number(start['courses'])} courses are there: "
        f"{number(sum(start['requests'].values()))} requests, {number(start['processor_seconds'])} s of processor time, "
        f"{number(start['memory_mib'])} MiB of memory ({number(start['peak_mib'])} MiB at the peak)."
    )
    limited = [step for step in steps if step["instances"] == limit["instances"]]
    if limited and start["tenants"] == limit["tenants"]:
        peak = limited[0]["peak_mib"]
        verdict = "kept" if peak <= limit["mib"] else "missed"
        before += (
            f" The limit of {number(limit['mib'])} MiB with {number(limit['instances'])} Instances and "
            f"{number(limit['tenants'])} Tenants is {verdict}: {number(peak)} MiB."
        )
    return f"{before}\n\n{text}"


def idle_table(run):
    rows = [
        ("idle time", lambda idle: f"{number(idle['seconds'])} s"),
        ("requests other than watches and renewals of the lease (limit 0 in ten minutes)", lambda idle: number(idle["requests"])),
        ("… writes (limit 0 in ten minutes)", lambda idle: number(idle["writes"])),
        ("watches that were renewed", lambda idle: number(idle["watches"])),
        ("renewals of the lease", lambda idle: number(idle["lease"])),
        ("requests to Prometheus", lambda idle: number(idle["prometheus"])),
        ("processor time", lambda idle: f"{number(idle['processor_seconds'])} s"),
        ("… of an hour", lambda idle: f"{number(idle['processor_seconds'] / max(idle['seconds'], 1) * 3600)} s"),
    ]
    body = [[name] + [of(step["idle"]) for step in run["steps"]] for name, of in rows]
    text = table(["Instances"] + [number(step["instances"]) for step in run["steps"]], body)
    for step in run["steps"]:
        idle = step["idle"]
        if idle["requests"]:
            said = ", ".join(f"{number(count)} `{what}`" for what, count in by_kind(idle).items())
            first = "" if "by_kind" in idle else f" Of the first {len(idle['named'])}:"
            text += (
                f"\n\nWith {number(step['instances'])} Instances, the {number(idle['requests'])} requests are these.{first} {said}."
            )
    return text


def by_kind(idle):
    """The number of requests of an idle time by verb and kind; only the named requests if the results have no counts."""
    if "by_kind" in idle:
        return idle["by_kind"]
    counts = {}
    for line in idle["named"]:
        _, _, verb, url = line.split(" ", 3)
        parts = url.split("?")[0].split("/")
        kind = "/".join([parts[-3] if parts[-1] == "status" else parts[-2]] + (["status"] if parts[-1] == "status" else []))
        counts[f"{verb} {kind}"] = counts.get(f"{verb} {kind}", 0) + 1
    return counts


def requests_table(runs):
    steps = [(run, step) for run in runs for step in run["steps"]]
    body = [
        [f"`{what}`"] + [share(per_instance(step, what)) for _, step in steps] for what in kinds_of(runs)
    ]
    body.append(["all"] + [number(step["requests_per_instance"]) for _, step in steps])
    return table(["requests for each Instance"] + [label(run, step) for run, step in steps], body)


def machine(run):
    binary = "a debug build, whose times and sizes say nothing" if run["is_debug"] else "the release binary"
    return (
        f"Measured with crownlabs {run['version']} ({binary}, {number(run['binary_mb'])} MB) and Kubernetes "
        f"{run['kubernetes']}, on {run['cores']} cores that the daemon shares with the API server, etcd, the controller "
        f"manager, Prometheus and the program that creates the load. The daemon logged {run['errors']} errors and "
        f"{run['warnings']} warnings."
    )


def plots(names):
    return "\n\n".join(f"![{title}](images/load-{name}.svg)" for name, title in names)


def fill(page, name, text):
    """The page with this text between the markers with that name."""
    begin, end = f"<!-- load:{name} -->", f"<!-- /load:{name} -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if len(pattern.findall(page)) != 1:
        sys.exit(f"{PAGE}: the markers {begin} and {end} have to be there once")
    return pattern.sub(lambda _: f"{begin}\n\n{text}\n\n{end}", page)


def main():
    files = [file for file in (RESULTS / "load.json", RESULTS / "load-kwok.json") if file.exists()]
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    runs.sort(key=lambda run: run["is_simulated"])
    if not runs or runs[0]["is_simulated"]:
        sys.exit(f"there is no {RESULTS / 'load.json'}: run `make load` first")
    plot_memory(runs)
    plot_time(runs[0])
    plot_requests(runs)
    plot_latency(runs)
    page = PAGE.read_text(encoding="utf-8")
    page = fill(page, "machine", machine(runs[0]))
    page = fill(page, "steps", steps_table(runs[0]))
    page = fill(page, "idle", idle_table(runs[0]))
    page = fill(page, "requests", requests_table(runs))
    page = fill(page, "plots", plots([
        ("memory", "Memory over the number of Instances"),
        ("time", "Memory and processor time over time"),
        ("requests", "Requests for each Instance by verb and kind"),
        ("latency", "Time from the acceptance of an Instance to its Ingress"),
    ]))
    for run in runs[1:]:
        page = fill(page, "kwok", f"{steps_table(run)}\n\n{idle_table(run)}")
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
