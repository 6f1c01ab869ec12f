// The call tree that the file carries (exporters/svg_data.h says how), and questions to it. Nothing of how it is drawn.
//
// A tree is a set of columns, one entry a node, parents before children and a node's descendants right behind it: those of n are
// n + 1 .. end[n] - 1. Node 0 is the root. Keep it ASCII.
const flameTree = (() => {
    "use strict";

    // columns: {depth, frame, selfNode, selfReason, selfUs} -> these, and parent, end and the time of each reason with all below.
    function complete(columns, data, idle) {
        const count = columns.depth.length;
        const parent = new Uint32Array(count);
        const end = new Uint32Array(count).fill(count);
        const path = [];
        for (let n = 0; n < count; n++) {
            const depth = columns.depth[n];
            while (path.length > depth) end[path.pop()] = n;
            parent[n] = depth > 0 ? path[depth - 1] : 0;
            path.push(n);
        }
        const reasonUs = data.reasons.map(() => null);
        columns.selfNode.forEach((node, i) => {
            const reason = columns.selfReason[i];
            if (reasonUs[reason] === null) reasonUs[reason] = new Float64Array(count);
            reasonUs[reason][node] += columns.selfUs[i];
        });
        for (const us of reasonUs) {
            for (let n = us === null ? 0 : count - 1; n > 0; n--) us[parent[n]] += us[n];
        }
        return { ...columns, data, count, parent, end, reasonUs, idle };
    }

    function read(data) {
        const count = data.nodes.reduce((sum, value) => sum + (value >= 0 ? 1 : 0), 0);
        const entries = data.selves.length / 3;
        const columns = { depth: new Uint32Array(count), frame: new Uint32Array(count), selfNode: new Uint32Array(entries),
                          selfReason: new Uint8Array(entries), selfUs: new Float64Array(entries) };
        let depth = 0;
        let node = 0;
        for (const value of data.nodes) {
            if (value < 0) {
                depth += value;
                continue;
            }
            columns.depth[node] = depth++;
            columns.frame[node++] = value;
        }
        for (let i = 0; i < entries; i++) {
            columns.selfNode[i] = (i > 0 ? columns.selfNode[i - 1] : 0) + data.selves[3 * i];
            columns.selfReason[i] = data.selves[3 * i + 1];
            columns.selfUs[i] = data.selves[3 * i + 2];
        }
        return complete(columns, data, data.idleNode);
    }

    const nameOf = (tree, node) => tree.data.strings[tree.data.frames[3 * tree.frame[node]]];
    const moduleOf = (tree, node) => tree.data.strings[tree.data.frames[3 * tree.frame[node] + 1]];
    const isGroup = (tree, node) => tree.data.frames[3 * tree.frame[node] + 2] === 0;

    // 0 for the root and "[idle]", 1 for a process, 2 for a pool or a thread, more for frames.
    function levelOf(tree, node) {
        if (tree.idle === 0 || node < tree.idle || node >= tree.end[tree.idle]) return tree.depth[node];
        return tree.depth[node] - 1;
    }

    const isThreads = (tree, node) => tree.data.threads !== "merge" && levelOf(tree, node) === 2 && isGroup(tree, node);
    const threadsName = (tree, node) => nameOf(tree, tree.parent[node]) + " / " + nameOf(tree, node);

    // The groups of threads, as [name, us] from the largest down.
    function threadGroups(tree) {
        const groups = new Map();
        for (let n = 1; n < tree.count; n++) {
            if (!isThreads(tree, n)) continue;
            const name = threadsName(tree, n);
            const us = tree.reasonUs.reduce((sum, column) => sum + (column === null ? 0 : column[n]), 0);
            groups.set(name, (groups.get(name) ?? 0) + us);
        }
        return [...groups].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    }

    // A tree of the same time: only: a group's name, the others left out; merge: the level of the groups left out.
    function regroup(tree, only, merge) {
        const frames = [tree.frame[0]];
        const children = [[]];
        const known = new Map(); // parent and frame, as one number -> node
        const frameCount = tree.data.frames.length / 3;
        const place = new Uint32Array(tree.count);
        const dropped = new Uint8Array(tree.count);
        let idle = 0;
        for (let n = 1; n < tree.count; n++) {
            const up = tree.parent[n];
            const threads = isThreads(tree, n);
            dropped[n] = dropped[up] || (threads && only !== null && threadsName(tree, n) !== only) ? 1 : 0;
            place[n] = place[up];
            if (dropped[n] || (threads && merge)) continue;
            const key = place[up] * frameCount + tree.frame[n];
            let node = known.get(key);
            if (node === undefined) {
                node = frames.push(tree.frame[n]) - 1;
                children.push([]);
                children[place[up]].push(node);
                known.set(key, node);
            }
            place[n] = node;
            if (n === tree.idle) idle = place[n];
        }
        return renumber(tree, frames, children, { place, dropped, idle });
    }

    // Numbers each node right before its descendants, siblings by name: as in the file.
    function renumber(tree, frames, children, from) {
        const name = (node) => tree.data.strings[tree.data.frames[3 * frames[node]]];
        const columns = { depth: new Uint32Array(frames.length), frame: new Uint32Array(frames.length), selfNode: [],
                          selfReason: [], selfUs: [] };
        const number = new Uint32Array(frames.length);
        const left = [[0, 0]];
        for (let n = 0; left.length > 0; n++) {
            const [node, depth] = left.pop();
            number[node] = n;
            columns.depth[n] = depth;
            columns.frame[n] = frames[node];
            const below = children[node].sort((a, b) => (name(a) < name(b) ? 1 : name(a) > name(b) ? -1 : b - a));
            for (const child of below) left.push([child, depth + 1]);
        }
        tree.selfNode.forEach((node, i) => {
            if (from.dropped[node]) return;
            columns.selfNode.push(number[from.place[node]]);
            columns.selfReason.push(tree.selfReason[i]);
            columns.selfUs.push(tree.selfUs[i]);
        });
        return complete(columns, tree.data, number[from.idle]);
    }

    // Time of each node in the reasons that shown (a list of booleans) has on.
    function weigh(tree, shown) {
        const us = new Float64Array(tree.count);
        tree.reasonUs.forEach((column, reason) => {
            if (column !== null && shown[reason]) for (let n = 0; n < tree.count; n++) us[n] += column[n];
        });
        return us;
    }

    // The shown reason of more than half of a node's time (-1: none), and whether most of that is its own and not of frames below.
    function judge(tree, shown, us, node) {
        const reason = tree.reasonUs.findIndex((column, r) => column !== null && shown[r] && column[node] > us[node] / 2);
        if (reason < 0) return { reason, own: false };
        let own = tree.reasonUs[reason][node];
        for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) own -= tree.reasonUs[reason][child];
        return { reason, own: own > tree.reasonUs[reason][node] / 2 };
    }

    // Nodes below top, and top, that have time and whose name matches; sumUs counts each moment once, however many frames of a
    // stack match.
    function search(tree, us, top, expression) {
        const verdicts = new Int8Array(tree.data.frames.length / 3).fill(-1);
        const nodes = [];
        let sumUs = 0;
        let counted = top;
        for (let n = top; n < tree.end[top]; n++) {
            const frame = tree.frame[n];
            if (verdicts[frame] < 0) verdicts[frame] = expression.test(nameOf(tree, n)) ? 1 : 0;
            if (verdicts[frame] === 0 || us[n] === 0) continue;
            nodes.push(n);
            if (n < counted) continue;
            sumUs += us[n];
            counted = tree.end[n];
        }
        return { nodes, sumUs };
    }

    // "dbserver/worker-*/poll": names below the root. The second of two siblings of one name is "name@2"; "@" and "/" in names are
    // percent-encoded.
    function pathTo(tree, node) {
        const parts = [];
        for (let n = node; n !== 0; n = tree.parent[n]) {
            let place = 1;
            for (let s = tree.parent[n] + 1; s < n; s = tree.end[s]) place += nameOf(tree, s) === nameOf(tree, n) ? 1 : 0;
            parts.unshift(encodeURIComponent(nameOf(tree, n)) + (place > 1 ? "@" + place : ""));
        }
        return parts.join("/");
    }

    // As far as the path leads: whole is false where it leads further than the tree.
    function follow(tree, path) {
        let node = 0;
        for (const part of path === "" ? [] : path.split("/")) {
            const [encoded, number] = part.split("@");
            let left = Number(number ?? 1);
            let child = node + 1;
            while (child < tree.end[node] && !(encodeURIComponent(nameOf(tree, child)) === encoded && --left <= 0)) child = tree.end[child];
            if (child >= tree.end[node]) return { node, whole: false };
            node = child;
        }
        return { node, whole: true };
    }

    return { read, regroup, threadGroups, weigh, judge, search, pathTo, follow, nameOf, moduleOf, isGroup };
})();
