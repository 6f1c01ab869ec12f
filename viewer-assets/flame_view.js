// Draws a tree: which frames, where, and the elements for them. Keep it ASCII.
const flameView = (() => {
    "use strict";

    const SVG = "http://www.w3.org/2000/svg";
    const XHTML = "http://www.w3.org/1999/xhtml";
    const ROW_PX = 19;
    const BASELINE_PX = 13;
    const PADDING_PX = 4;
    const NARROWEST_PX = 0.6;
    const FRAMES_MAX = 2400; // three elements each: the page stays below 10,000 with all else

    // A sign for each reason: colour is never the only one.
    const SIGNS = { cpu: "\u25b2", runnable: "\u25b3", database: "\u25a0", network: "\u25a1", lock: "\u2716", disk: "\u25cf",
                    sleep: "\u25cb", other: "\u25c6", stopped: "\u25ae", unknown: "?", idle: "\u00b7" };

    // An element with attributes; text only ever as text. children: elements or strings.
    function element(namespace, name, attributes, ...children) {
        const made = document.createElementNS(namespace, name);
        for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
        made.append(...children);
        return made;
    }
    const svg = (name, attributes, ...children) => element(SVG, name, attributes, ...children);
    const html = (name, attributes, ...children) => element(XHTML, name, attributes, ...children);

    // The frames that are wide enough: those above zoom over the whole width, then it and what is below.
    function choose(tree, us, zoom, width) {
        const base = tree.depth[zoom];
        const scale = us[zoom] > 0 ? width / us[zoom] : 0;
        const next = [0]; // by level: where the next sibling starts
        const starts = []; // by level, of the node last seen there
        const below = [];
        for (let n = zoom; n < tree.end[zoom] && scale > 0;) {
            const level = tree.depth[n] - base;
            // "[idle]" stands at the right end, where it does not part the others.
            const atEnd = n === tree.idle && level > 0;
            const start = atEnd ? starts[level - 1] + us[tree.parent[n]] - us[n] : next[level];
            if (!atEnd) next[level] += us[n];
            starts[level] = start;
            next[level + 1] = start;
            if (us[n] * scale < NARROWEST_PX) {
                n = tree.end[n];
                continue;
            }
            below.push({ node: n, row: tree.depth[n], left: start * scale, right: (start + us[n]) * scale });
            n++;
        }
        const above = [];
        for (let n = zoom; n !== 0; n = tree.parent[n]) above.unshift({ node: tree.parent[n], row: tree.depth[n] - 1, left: 0, right: width, above: true });
        const room = Math.max(FRAMES_MAX - above.length, 0);
        if (below.length <= room) return above.concat(below);
        // A parent is never narrower than its child, so what is wider than a limit is a tree.
        const limit = below.map((box) => us[box.node]).sort((a, b) => b - a)[room];
        return above.concat(below.filter((box) => us[box.node] > limit));
    }

    function describe(view, node) {
        const { tree, us } = view;
        const name = flameTree.nameOf(tree, node);
        return `${name}, ${flameLabel.time(us[node])}, ${flameLabel.share(us[node], us[0])}`;
    }

    function label(view, box, verdict, columns) {
        const name = flameTree.nameOf(view.tree, box.node);
        const sign = verdict.own && verdict.reason >= 0 ? SIGNS[view.tree.data.reasons[verdict.reason][0]] + " " : "";
        if (sign !== "" || flameTree.isGroup(view.tree, box.node)) {
            const us = view.us[box.node];
            const both = `${sign}${name}  ${flameLabel.time(us)}, ${flameLabel.share(us, view.us[0])}`;
            if (both.length <= columns) return both;
            if (columns > 12) return sign + flameLabel.fit(name, columns - sign.length);
        }
        return flameLabel.fit(name, columns);
    }

    function frame(view, box, rows) {
        const { tree, shown, us } = view;
        const verdict = flameTree.judge(tree, shown, us, box.node);
        const reason = verdict.reason < 0 ? "mixed" : tree.data.reasons[verdict.reason][0];
        const left = Math.floor(box.left * 100) / 100;
        const width = Math.floor(box.right * 100) / 100 - left;
        const y = (view.upward ? rows - 1 - box.row : box.row) * ROW_PX;
        const classes = ["f", reason];
        if (verdict.own) classes.push("own");
        if (flameTree.isGroup(tree, box.node)) classes.push("group");
        if (box.above) classes.push("above");
        const group = svg("g", { class: classes.join(" "), role: "treeitem", tabindex: "-1", "aria-level": tree.depth[box.node] + 1,
                                 "aria-label": describe(view, box.node), "data-node": box.node },
                          svg("rect", { x: left.toFixed(2), y, width: Math.max(width, 0).toFixed(2), height: ROW_PX }));
        const text = label(view, box, verdict, Math.floor((width - 2 * PADDING_PX) / view.columnPx));
        if (text !== "") {
            const drawn = svg("text", { x: (left + PADDING_PX).toFixed(2), y: y + BASELINE_PX, "aria-hidden": "true" });
            drawn.textContent = text;
            group.append(drawn);
        }
        return group;
    }

    // What matches a search stands out; matches: a list of nodes, null without a search.
    function mark(boxes, matches) {
        const matched = new Set(matches ?? []);
        for (const box of boxes) {
            box.element.classList.toggle("match", matched.has(box.node));
            box.element.classList.toggle("dim", matches !== null && !matched.has(box.node));
        }
    }

    // Puts the frames into area, an svg element. view: {tree, us, shown, zoom, upward, columnPx}.
    // Returns the boxes drawn, each with its element.
    function draw(area, view, width) {
        const boxes = choose(view.tree, view.us, view.zoom, width);
        const rows = boxes.reduce((most, box) => Math.max(most, box.row + 1), 1);
        for (const box of boxes) box.element = frame(view, box, rows);
        area.setAttribute("width", width);
        area.setAttribute("height", rows * ROW_PX);
        area.replaceChildren(...boxes.map((box) => box.element));
        return boxes;
    }

    // Width of a character of the frames' font.
    function measureColumn(area) {
        const text = svg("text", { "aria-hidden": "true" });
        text.textContent = "M".repeat(40);
        const probe = svg("g", { class: "f" }, text);
        area.append(probe);
        const width = text.getComputedTextLength() / 40;
        probe.remove();
        return width > 0 ? width * 1.005 : 7.3;
    }

    return { draw, mark, measureColumn, svg, html, SIGNS };
})();
