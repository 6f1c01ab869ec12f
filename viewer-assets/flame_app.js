// The flame graph with all one can do to it. Mounts itself where the file's data is. Keep it ASCII.
//
// The state is small and stands in the address (#at=...): the view of whoever follows a link is the same.
const flameApp = (() => {
    "use strict";

    const { svg, html, SIGNS } = flameView;
    const HELP = [["arrows", "go to the caller, a callee, a neighbour"], ["Enter", "zoom to the frame"], ["Backspace", "back to the zoom before"],
                  ["Escape", "everything again"], ["/", "search names"], ["n, N", "next, previous match"], ["c", "copy the name"],
                  ["l", "copy a link to this view"], ["i", "root above or below"], ["?", "this list"]];

    const WAITS = { database: "waits for a database", network: "waits for the network", lock: "waits for a lock", disk: "waits for a disk",
                    sleep: "is sleep", other: "waits for something else" };

    function mount(host, data) {
        const base = flameTree.read(data);
        const totals = base.reasonUs.map((column) => (column === null ? 0 : column[0]));
        const idle = data.reasons.findIndex(([name]) => name === "idle");
        const busyUs = data.totalUs - totals[idle];
        const groups = flameTree.threadGroups(base);
        const state = { tree: base, threads: "", shown: [], us: null, zoom: 0, selected: 0, query: "", expression: null, found: null,
                        upward: false, boxes: [], trail: [] };
        const ui = build();

        // --- elements ---

        function button(text, title, act, attributes = {}) {
            const made = html("button", { type: "button", title, ...attributes }, text);
            made.addEventListener("click", act);
            return made;
        }

        function legendButton([name, label], reason) {
            const us = totals[reason];
            const sign = svg("text", { x: 8, y: 12, "text-anchor": "middle" }, SIGNS[name]);
            const swatch = svg("svg", { class: "swatch", width: 16, height: 16, "aria-hidden": "true" },
                               svg("g", { class: `f ${name} own` }, svg("rect", { width: 16, height: 16, rx: 3 }), sign));
            const facts = `${flameLabel.time(us)} \u00b7 ${flameLabel.threads(us, data.durationUs)} threads`;
            const busy = reason === idle || totals[idle] === 0 ? "" : `${flameLabel.share(us, busyUs)} without idle`;
            const made = button("", `Show or hide: ${label}`, () => { state.shown[reason] = !state.shown[reason]; reshape(); record(); },
                                { class: "reason", "data-reason": name });
            made.append(swatch, html("span", { class: "what" }, html("b", {}, `${label} ${flameLabel.share(us, data.totalUs)}`),
                                     html("small", {}, facts), html("small", { class: "hidden-note" }, "hidden: press to show"),
                                     html("small", {}, busy)));
            return made;
        }

        function shareBar() {
            const bar = svg("svg", { class: "bar", width: "100%", height: 14, "aria-hidden": "true" });
            let start = 0;
            totals.forEach((us, reason) => {
                const part = svg("rect", { x: `${100 * start / data.totalUs}%`, width: `${100 * us / data.totalUs}%`, height: 14 });
                if (us > 0) bar.append(svg("g", { class: `${data.reasons[reason][0]} own` }, part));
                start += us;
            });
            return bar;
        }

        // The leaf in which most of a reason's time is spent: what the wait is for.
        function mainLeaf(reason) {
            const us = new Float64Array(data.frames.length / 3);
            base.selfNode.forEach((node, i) => { if (base.selfReason[i] === reason) us[base.frame[node]] += base.selfUs[i]; });
            const frame = us.reduce((best, time, i) => (time > us[best] ? i : best), 0);
            return data.strings[data.frames[3 * frame]];
        }

        // What the picture says, in a sentence: the largest part of the time that is not idle.
        function lead() {
            const largest = totals.reduce((best, us, reason) => (reason !== idle && us > (totals[best] ?? 0) ? reason : best), -1);
            if (largest < 0) return data.totalUs > 0 ? "All threads were idle." : "Nothing was sampled in this window.";
            const [name, label] = data.reasons[largest];
            const target = mainLeaf(largest).replace(/^\[wait: (.*)\]$/, "$1");
            const share = `${flameLabel.share(totals[largest], busyUs)} of the time${totals[idle] > 0 ? " that is not idle" : ""}`;
            if (!Object.hasOwn(WAITS, name)) return `${share}: ${label}`;
            return `${share} ${WAITS[name]}${target === name ? "" : `, mostly ${target}`}`;
        }

        function threadChoice() {
            const choice = html("select", { "aria-label": "Threads" });
            const add = (value, text) => choice.append(html("option", { value }, text));
            add("", data.threads === "each" ? "threads: each" : "threads: grouped by name");
            add("all", "threads: all in one");
            for (const [name, us] of groups) add("=" + name, `only ${name} (${flameLabel.time(us)})`);
            choice.addEventListener("change", () => { regroup(choice.value); record(); });
            if (groups.length < 2) choice.hidden = true;
            return choice;
        }

        function build() {
            const made = { lead: html("p", { class: "lead" }, lead()), threads: threadChoice() };
            made.search = html("input", { type: "search", placeholder: "search names: regular expression", "aria-label": "Search names by regular expression",
                                          spellcheck: "false", autocomplete: "off" });
            made.search.addEventListener("input", () => { search(made.search.value); record(); });
            made.result = html("output", { class: "result", role: "status" });
            made.next = button("\u2193", "Next match (n)", () => step(1), { "aria-label": "Next match" });
            made.previous = button("\u2191", "Previous match (N)", () => step(-1), { "aria-label": "Previous match" });
            made.back = button("Back", "To the zoom before (Backspace)", back);
            made.whole = button("Whole", "Everything again (Escape)", () => zoomTo(0));
            made.flip = button("Flip", "Root above or below (i)", flip, { "aria-pressed": "false" });
            made.link = button("Copy link", "A link that restores this view (l)", () => copy(location.href, "link"));
            made.helpButton = button("?", "Keys (?)", help, { "aria-label": "Keys", "aria-expanded": "false" });
            made.help = html("dl", { class: "help" }, ...HELP.flatMap(([key, what]) => [html("dt", {}, key), html("dd", {}, what)]));
            made.help.hidden = true;
            made.reasons = data.reasons.map((reason, i) => (totals[i] > 0 ? legendButton(reason, i) : null));
            made.area = svg("svg", { class: "frames", role: "tree", "aria-label": "Flame graph: callers to callees, width is time" });
            made.chart = html("div", { class: "chart" }, made.area);
            made.name = html("b", { class: "name" });
            made.copy = button("Copy name", "Copy the name (c)", () => copy(flameTree.nameOf(state.tree, state.selected), "name"));
            made.facts = html("span", { class: "facts" });
            made.note = html("span", { class: "note", role: "status" });
            made.details = html("div", { class: "details", role: "region", "aria-label": "Details" },
                                html("div", {}, made.name, made.copy, made.note), made.facts);
            const tools = html("div", { class: "tools", role: "toolbar", "aria-label": "View" }, made.search, made.previous, made.next, made.result,
                               made.back, made.whole, made.flip, made.threads, made.link, made.helpButton);
            const head = html("header", {}, html("h1", {}, data.title), made.lead, html("p", { class: "muted" }, data.facts));
            if (data.loss !== "") head.append(html("p", { class: "loss" }, data.loss));
            made.root = html("div", { class: "viewer", lang: "en", title: "" }, head, html("main", {}, ...(data.totalUs > 0 ? [shareBar()] : []),
                html("div", { class: "reasons", role: "group", "aria-label": "What time went to; press to show or hide" }, ...made.reasons.filter((b) => b !== null)),
                tools, made.help, made.chart, made.details));
            return made;
        }

        // --- changes ---

        function render() {
            const held = ui.area.contains(document.activeElement);
            const width = Math.floor(ui.chart.clientWidth);
            state.columnPx ??= flameView.measureColumn(ui.area);
            const view = { tree: state.tree, us: state.us, shown: state.shown, zoom: state.zoom, upward: state.upward, columnPx: state.columnPx };
            state.boxes = flameView.draw(ui.area, view, width);
            ui.back.disabled = state.trail.length === 0;
            ui.whole.disabled = state.zoom === 0;
            flameView.mark(state.boxes, state.found?.nodes ?? null);
            select(boxOf(state.selected) === undefined ? state.zoom : state.selected, held);
        }

        function boxOf(node) {
            return state.boxes.find((box) => box.node === node);
        }

        function select(node, focus) {
            boxOf(state.selected)?.element.setAttribute("tabindex", "-1");
            state.selected = node;
            const box = boxOf(node);
            box?.element.setAttribute("tabindex", "0");
            if (focus) box?.element.focus();
            detail(node);
        }

        function detail(node) {
            const { tree, us } = state;
            const whole = (reason) => tree.reasonUs[reason]?.[node] ?? 0;
            const allUs = totals.reduce((sum, _, reason) => sum + whole(reason), 0);
            const module = flameTree.moduleOf(tree, node);
            const parts = [`${flameLabel.time(us[node])}`, `${flameLabel.share(us[node], data.totalUs)} of all`];
            if (totals[idle] > 0) parts.push(`${flameLabel.share(Math.min(allUs - whole(idle), us[node]), busyUs)} without idle`);
            parts.push(`${flameLabel.share(us[node], us[state.zoom])} of what is shown`, `${flameLabel.threads(us[node], data.durationUs)} threads on average`);
            const reasons = data.reasons.map(([, label], reason) => [label, state.shown[reason] ? whole(reason) : 0]).filter(([, time]) => time > 0);
            reasons.sort((a, b) => b[1] - a[1]);
            ui.name.textContent = flameTree.nameOf(tree, node) + (module !== "" ? ` (${module})` : "");
            ui.facts.textContent = parts.join(" \u00b7 ") + (reasons.length > 0 ? " \u2014 " : "") +
                reasons.map(([label, time]) => `${label} ${flameLabel.time(time)}`).join(", ");
            ui.note.textContent = "";
        }

        // After a change of what is shown.
        function reshape() {
            state.us = flameTree.weigh(state.tree, state.shown);
            if (state.us[state.zoom] === 0) state.zoom = 0;
            ui.reasons.forEach((made, reason) => made?.setAttribute("aria-pressed", String(state.shown[reason])));
            refresh();
        }

        function regroup(threads) {
            const path = flameTree.pathTo(state.tree, state.zoom);
            const known = threads === "all" || (threads.startsWith("=") && groups.some(([name]) => "=" + name === threads));
            state.threads = known ? threads : "";
            state.tree = known ? flameTree.regroup(base, threads === "all" ? null : threads.slice(1), threads === "all") : base;
            state.zoom = flameTree.follow(state.tree, path).node;
            state.selected = state.zoom;
            state.trail = [];
            ui.threads.value = state.threads;
            reshape();
        }

        function search(text) {
            state.query = text;
            state.expression = state.found = null;
            let said = "";
            if (text !== "") {
                try {
                    state.expression = new RegExp(text, /[A-Z]/.test(text) ? "u" : "iu"); // a capital letter means it
                    state.found = flameTree.search(state.tree, state.us, state.zoom, state.expression);
                    said = `${flameLabel.share(state.found.sumUs, state.us[state.zoom])} matched \u00b7 ${state.found.nodes.length.toLocaleString("en-US")} frames`;
                } catch (error) {
                    said = `not a regular expression: ${error.message.replace(/^Invalid regular expression: /, "")}`;
                }
            }
            ui.search.setAttribute("aria-invalid", String(text !== "" && state.expression === null));
            ui.result.textContent = said;
            ui.next.disabled = ui.previous.disabled = (state.found?.nodes.length ?? 0) === 0;
            flameView.mark(state.boxes, state.found?.nodes ?? null);
        }

        // The search again in what is shown now, and all of it drawn anew.
        function refresh() {
            search(state.query);
            render();
        }

        function step(by) {
            const nodes = state.found?.nodes ?? [];
            if (nodes.length === 0) return;
            const at = nodes.indexOf(state.selected);
            const place = at >= 0 ? at + by : by > 0 ? nodes.findIndex((n) => n > state.selected) : nodes.findLastIndex((n) => n < state.selected);
            const node = nodes[(place + nodes.length) % nodes.length];
            if (boxOf(node) === undefined) zoomTo(parentToShow(node));
            select(node, true);
            boxOf(node)?.element.scrollIntoView({ block: "nearest" });
            ui.note.textContent = `match ${nodes.indexOf(node) + 1} of ${nodes.length}`;
        }

        // Too narrow to be drawn: its nearest caller that makes it at least a twentieth of the width, within the zoom.
        function parentToShow(node) {
            let top = node;
            while (state.us[state.tree.parent[top]] <= 20 * state.us[node] && top !== state.zoom && top !== 0) top = state.tree.parent[top];
            return top;
        }

        function zoomTo(node) {
            if (node === state.zoom) return;
            state.trail.push(state.zoom);
            state.zoom = node;
            state.selected = node;
            refresh();
            record(true);
        }

        function back() {
            if (state.trail.length === 0) return;
            const from = state.zoom;
            state.zoom = state.trail.pop();
            state.selected = from;
            refresh();
            record();
        }

        function flip() {
            state.upward = !state.upward;
            ui.flip.setAttribute("aria-pressed", String(state.upward));
            render();
            record();
        }

        function help() {
            ui.help.hidden = !ui.help.hidden;
            ui.helpButton.setAttribute("aria-expanded", String(!ui.help.hidden));
        }

        async function copy(text, what) {
            try {
                await navigator.clipboard.writeText(text);
                ui.note.textContent = `${what} copied`;
            } catch {
                if (what === "link") ui.name.textContent = text;
                getSelection().selectAllChildren(ui.name);
                ui.note.textContent = "marked: copy it with Ctrl+C";
            }
        }

        // --- the address ---

        function defaultShown() {
            return data.reasons.map((_, reason) => reason !== idle || busyUs <= 0);
        }

        function record(asStep) {
            const fields = [];
            const hidden = data.reasons.filter((_, reason) => !state.shown[reason]).map(([name]) => name);
            const usual = defaultShown().every((shown, reason) => shown === state.shown[reason]);
            if (state.zoom !== 0) fields.push("at=" + flameTree.pathTo(state.tree, state.zoom));
            if (state.query !== "") fields.push("find=" + encodeURIComponent(state.query));
            if (!usual) fields.push("hide=" + hidden.join(","));
            if (state.upward) fields.push("root=below");
            if (state.threads !== "") fields.push("threads=" + encodeURIComponent(state.threads));
            try {
                history[asStep ? "pushState" : "replaceState"](null, "", "#" + fields.join("&"));
            } catch {
                // A sandboxed frame, or too many changes a second: the view is right, only the address stays behind.
            }
        }

        function restore() {
            const fields = new Map(location.hash.slice(1).split("&").map((field) => [field.split("=", 1)[0], field.slice(field.indexOf("=") + 1)]));
            const text = (key) => { try { return decodeURIComponent(fields.get(key) ?? ""); } catch { return ""; } };
            state.shown = defaultShown();
            if (fields.has("hide")) state.shown = data.reasons.map(([name]) => !fields.get("hide").split(",").includes(name));
            state.upward = fields.get("root") === "below";
            ui.flip.setAttribute("aria-pressed", String(state.upward));
            state.zoom = 0;
            state.query = ui.search.value = text("find");
            regroup(text("threads"));
            const goal = flameTree.follow(state.tree, fields.get("at") ?? "");
            state.zoom = state.us[goal.node] > 0 ? goal.node : 0;
            state.selected = state.zoom;
            refresh();
            if (!goal.whole) ui.note.textContent = "the linked frame is not in this profile; this is its nearest caller";
        }

        // --- pointer and keys ---

        function move(key) {
            const box = boxOf(state.selected);
            const down = state.upward ? "ArrowUp" : "ArrowDown";
            const near = (row, take) => state.boxes.filter((other) => other.row === row && take(other));
            if (box === undefined) return;
            let goal;
            if (key === "ArrowLeft") goal = near(box.row, (other) => other.left < box.left).pop();
            else if (key === "ArrowRight") goal = near(box.row, (other) => other.left > box.left)[0];
            else if (key === down) goal = near(box.row + 1, (other) => state.tree.parent[other.node] === box.node).sort((a, b) => b.right - b.left - a.right + a.left)[0];
            else goal = box.row > 0 ? boxOf(state.tree.parent[box.node]) : undefined;
            if (goal === undefined) return;
            select(goal.node, true);
            goal.element.scrollIntoView({ block: "nearest" });
        }

        const KEYS = { Enter: () => { zoomTo(state.selected); select(state.zoom, true); }, Escape: () => zoomTo(0), Backspace: back, n: () => step(1), N: () => step(-1),
                       c: () => ui.copy.click(), l: () => ui.link.click(), i: flip, "?": help, "/": () => { ui.search.focus(); ui.search.select(); } };

        function onKey(event) {
            if (event.ctrlKey || event.metaKey || event.altKey) return;
            const name = event.target.localName;
            if (name === "input") {
                if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
                if (event.key === "Escape") { ui.search.value = ""; search(""); record(); select(state.selected, true); }
                return;
            }
            if (name === "select" || (name === "button" && (event.key === "Enter" || event.key === " "))) return;
            if (event.key.startsWith("Arrow") && ui.area.contains(event.target)) move(event.key);
            else if (Object.hasOwn(KEYS, event.key)) KEYS[event.key]();
            else return;
            event.preventDefault();
        }

        const nodeAt = (event) => Number(event.target.closest?.("g[data-node]")?.getAttribute("data-node") ?? -1);
        ui.area.addEventListener("click", (event) => { if (nodeAt(event) >= 0) { const node = nodeAt(event); zoomTo(node); select(node, true); } });
        ui.area.addEventListener("pointerover", (event) => { if (nodeAt(event) >= 0) detail(nodeAt(event)); });
        ui.area.addEventListener("pointerleave", () => detail(state.selected));
        ui.area.addEventListener("focusin", (event) => { if (nodeAt(event) >= 0 && nodeAt(event) !== state.selected) select(nodeAt(event), false); });
        document.addEventListener("keydown", onKey);
        addEventListener("hashchange", restore);
        addEventListener("popstate", restore);
        host.append(ui.root);
        restore();
        new ResizeObserver(() => { if (Math.floor(ui.chart.clientWidth) !== Number(ui.area.getAttribute("width"))) render(); }).observe(ui.chart);
    }

    // In a picture of its own: takes the place of the still one, which stays where this fails.
    function start(picture) {
        const data = Object.assign({}, ...[...picture.querySelectorAll("script.data")].map((part) => JSON.parse(part.textContent)));
        const host = svg("foreignObject", { width: "100%", height: "100%" });
        const kept = ["viewBox", "width", "height", "role", "aria-label"].map((name) => [name, picture.getAttribute(name)]);
        const still = picture.querySelector("g.still");
        for (const [name] of kept) picture.removeAttribute(name);
        picture.classList.add("live");
        picture.append(host);
        still.remove();
        try {
            mount(host, data);
        } catch (error) {
            for (const [name, value] of kept) picture.setAttribute(name, value);
            picture.classList.remove("live");
            host.replaceWith(still);
            throw error;
        }
    }

    return { mount, start };
})();
if (document.currentScript?.parentNode?.localName === "svg") flameApp.start(document.currentScript.parentNode);
