// Uses the flame graph as people do: pointer, keys, links. The first file is that of the example server (tests/golden/fixtures.h);
// all are opened.
//
//   run.sh FOLDER svg_interacts.mjs SERVER FILE...
import fs from "node:fs";
import path from "node:path";

import { newPage, serve, withBrowser } from "./page.mjs";

const NODES_MAX = 10000;
const HOSTILE = `</script><script>window.ran = 1</script><img src="x" onerror="window.ran = 1"/>]]>&lt;b&gt;'"`;

const [folder, ...files] = process.argv.slice(2);
const routes = {};
let failures = 0;

function expect(condition, what) {
    if (!condition) throw new Error(what);
}

function same(seen, wanted, what) {
    expect(seen === wanted, `${what}: ${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`);
}

const frame = (page, name) => page.locator(`svg.frames g[aria-label^="${name}, "]`).first();
const result = (page) => page.locator(".result").textContent();
const details = (page) => page.locator(".details").textContent();
const all = (page) => frame(page, "all").getAttribute("aria-label");
const focused = (page) => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.localName);
const share = (page, name) => frame(page, name).evaluate((group) =>
    group.querySelector("rect").getAttribute("width") / document.querySelector("svg.frames").getAttribute("width"));

async function zoomsAndGoesBack(page) {
    same(await all(page), "all, 8.51 s, 100.0 %", "the root");
    await frame(page, "handle_time").click();
    expect(await share(page, "handle_time") > 0.999, "a frame that was clicked is not as wide as the picture");
    expect(await share(page, "worker-*") > 0.999, "its caller is not as wide as the picture");
    same(await frame(page, "housekeeper").count(), 0, "frames beside it");
    await frame(page, "PQexec").click();
    await page.keyboard.press("Backspace");
    expect(await share(page, "handle_time") > 0.999, "Backspace does not lead to the zoom before");
    await page.getByText("Whole").click();
    same(await frame(page, "housekeeper").count() > 0, true, "all frames again");
    await page.getByText("Back", { exact: true }).click();
    expect(await share(page, "handle_time") > 0.999, "Back does not lead to the zoom before");
    await page.keyboard.press("Escape");
    await frame(page, "worker-*").click();
    await page.goBack();
    expect(await share(page, "worker-*") < 0.95, "the browser's own way back does not undo a zoom");
    await page.keyboard.press("Escape");
}

async function searches(page) {
    const field = page.locator("input[type=search]");
    await field.fill("^poll$");
    same(await result(page), "74.3 % matched \u00b7 1 frames", "the whole name alone");
    await field.fill("^(pq|poll)"); // nested matches count once
    expect((await result(page)).startsWith("74.3 % matched \u00b7 6"), `nested matches: ${await result(page)}`);
    await field.fill("s|all");
    expect((await result(page)).startsWith("100.0 %"), "a match of the root is everything");
    await field.fill("^samples$|threads on average");
    expect((await result(page)).startsWith("0 % matched"), "what is no name matches");
    await field.fill("pqexec$");
    await frame(page, "worker-*").click();
    same(await result(page), "84.4 % matched \u00b7 1 frames", "the share of what is shown");
    await page.keyboard.press("Escape");
    await field.fill("(");
    expect((await result(page)).startsWith("not a regular expression"), `a wrong expression: ${await result(page)}`);
    same(await field.getAttribute("aria-invalid"), "true", "the field with a wrong expression");
    await field.fill("start_thread");
    await page.getByLabel("Next match").click();
    const first = await focused(page);
    await page.getByLabel("Next match").click();
    expect(first.startsWith("start_thread") && first !== (await focused(page)), "the next match is the same one");
    await page.keyboard.press("N");
    same(await focused(page), first, "the match before");
    await field.fill("");
    same(await page.locator("svg.frames .dim").count(), 0, "dimmed frames without a search");
}

async function switchesStates(page) {
    const idle = page.locator("button[data-reason=idle]");
    same(await idle.getAttribute("aria-pressed"), "false", "idle at first");
    expect((await idle.textContent()).includes("idle 10.3 %"), "the total of hidden idle time is not told");
    same(await frame(page, "[idle]").count(), 0, "idle frames at first");
    await idle.click();
    same(await all(page), "all, 9.49 s, 100.0 %", "all with idle");
    const [right, end] = await page.evaluate(() => [document.querySelector('g[aria-label^="[idle],"] rect').getBoundingClientRect().right,
                                                    document.querySelector("svg.frames").getBoundingClientRect().right]);
    expect(Math.abs(right - end) < 1, "[idle] is not at the right end");
    await page.locator("button[data-reason=database]").click();
    same(await frame(page, "poll").count(), 0, "the database when it is switched off");
    await idle.click();
    await page.locator("button[data-reason=database]").click();
    same(await all(page), "all, 8.51 s, 100.0 %", "all as at first");
}

async function restoresFromLink(page, browser, faults) {
    await frame(page, "db::Pool::query(std::string const&)").click();
    await page.locator("input[type=search]").fill("poll|lock");
    await page.locator("button[data-reason=sleep]").click();
    await page.getByText("Flip").click();
    const other = await newPage(browser, faults);
    await other.goto(page.url());
    await other.waitForSelector(".viewer");
    const seen = (p) => p.evaluate(() => [document.querySelector("svg.frames").innerHTML, document.querySelector(".result").textContent,
                                           document.querySelector("input").value].join("\n"));
    same(await seen(other), await seen(page), "the view behind the link");
    expect(!/\b\d{3,}\b/.test(new URL(page.url()).hash), "the link speaks of pixels or numbers");
    const missing = page.url().replace(/at=[^&]*/, "at=dbserver/worker-*/gone/deeper");
    await other.goto("about:blank");
    await other.goto(missing);
    expect((await details(other)).includes("not in this profile"), "a link to a frame that is not there says nothing");
    await other.goto(missing.replace(/#.*/, "#at=%ff/%&find=%&hide=x&threads=%zz"));
    await other.reload();
    expect(await other.locator(".viewer").count() === 1, "a broken link breaks the page");
    await other.close();
    await page.getByText("Flip").click();
    await page.locator("button[data-reason=sleep]").click();
    await page.locator("input[type=search]").fill("");
    await page.getByText("Whole").click();
}

async function obeysKeys(page) {
    await frame(page, "all").focus();
    await page.keyboard.press("ArrowDown");
    expect((await focused(page)).startsWith("dbserver,"), "down does not lead to the callee");
    await page.keyboard.press("ArrowDown");
    expect((await focused(page)).startsWith("worker-*,"), "down does not lead to the widest callee");
    await page.keyboard.press("ArrowLeft");
    expect((await focused(page)).startsWith("housekeeper,"), "left does not lead to the neighbour");
    await page.keyboard.press("ArrowUp");
    expect((await focused(page)).startsWith("dbserver,"), "up does not lead to the caller");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await share(page, "worker-*") > 0.999 && (await focused(page)).startsWith("worker-*,"), "Enter does not zoom");
    await page.keyboard.press("c");
    await page.waitForFunction(() => document.querySelector(".note").textContent === "name copied");
    same(await page.evaluate(() => navigator.clipboard.readText()), "worker-*", "the copied name");
    await page.keyboard.press("i");
    const [root, below] = [await frame(page, "all").boundingBox(), await frame(page, "worker-*").boundingBox()];
    expect(root.y > below.y, "i does not put the root below");
    await page.keyboard.press("i");
    await page.keyboard.press("/");
    await page.keyboard.type("poll");
    await page.keyboard.press("Enter");
    expect(/poll/i.test(await focused(page)), `Enter in the search leads to ${await focused(page)}`);
    await page.keyboard.press("n");
    await page.locator("input[type=search]").fill("");
    await frame(page, "worker-*").focus();
    await page.keyboard.press("?");
    expect(await page.locator(".help").isVisible(), "? does not tell the keys");
    await page.keyboard.press("?");
    await page.keyboard.press("Escape");
    expect(await share(page, "worker-*") < 0.95, "Escape does not show all");
}

async function tellsDetails(page) {
    await frame(page, "[wait: tcp 10.0.0.5:5432 postgresql]").hover();
    const text = await details(page);
    for (const part of ["6.33 s", "66.7 % of all", "74.3 % without idle", "6.33 threads on average", "database 6.33 s"])
        expect(text.includes(part), `no "${part}" in the details: ${text}`);
    await frame(page, "PQexec").hover();
    expect((await details(page)).includes("PQexec (libpq.so.5)"), "no module in the details");
}

async function groupsThreads(page) {
    const choice = page.getByLabel("Threads");
    await choice.selectOption("all");
    same(await frame(page, "worker-*").count(), 0, "groups with all threads in one");
    same(await all(page), "all, 8.51 s, 100.0 %", "the time of all threads in one");
    await choice.selectOption({ index: 3 });
    expect(await frame(page, "worker-*").count() === 0 || await frame(page, "housekeeper").count() === 0, "one group alone");
    await choice.selectOption("");
    same(await frame(page, "worker-*").count(), 1, "groups again");
}

// Colour is never the only sign of a reason, and names lose what tells least.
async function labels(page) {
    const seen = await page.evaluate(() => {
        const data = JSON.parse(document.querySelector("script.data").textContent);
        return { unsigned: data.reasons.map(([name]) => name).filter((name) => !flameView.SIGNS[name]),
                 signs: new Set(data.reasons.map(([name]) => flameView.SIGNS[name])).size, reasons: data.reasons.length,
                 fits: [["a::b<int, c>::push_back(d const&)", 40], ["a::b<int, c>::push_back(d const&)", 23], ["a::b<int, c>::push_back(d const&)", 16],
                        ["a::b<int, c>::push_back(d const&)", 6], ["[wait: tcp 10.0.0.5:5432]", 18], ["poll", 2], ["operator<", 8]]
                     .map(([name, columns]) => flameLabel.fit(name, columns)),
                 times: [12, 4050, 63.2e6, 2041e6].map(flameLabel.time), shares: [[1, 1e6], [4, 1e4], [621, 1000], [0, 0]].map(([part, whole]) => flameLabel.share(part, whole)) };
    });
    same(seen.unsigned.join(), "", "reasons without a sign");
    same(seen.signs, seen.reasons, "different signs");
    same(seen.fits.join("|"), "a::b<int, c>::push_back(d const&)|a::b<\u2026>::push_back(\u2026)|\u2026::push_back(\u2026)|push_\u2026|tcp 10.0.0.5:5432||operato\u2026", "names cut");
    same(seen.times.join("|"), "12 \u00b5s|4.05 ms|63.2 s|2,041 s", "times");
    same(seen.shares.join("|"), "< 0.01 %|0.04 %|62.1 %|0 %", "shares");
}

async function isAccessible(page) {
    await page.evaluate(fs.readFileSync(path.join(folder, "node_modules/axe-core/axe.min.js"), "utf8"));
    const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
    const bad = found.violations.filter((v) => ["serious", "critical"].includes(v.impact));
    expect(bad.length === 0, `axe: ${bad.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)} ${v.nodes[0].failureSummary}`).join("; ")}`);
}

// What every file must keep to, whatever it holds.
async function holdsTogether(page) {
    const faults = await page.evaluate((most) => {
        const found = [];
        if (document.querySelectorAll("*").length > most) found.push("too many elements");
        if (document.querySelector("g.still") !== null) found.push("the still picture is still there");
        const viewer = document.querySelector(".viewer");
        if (viewer.scrollWidth > viewer.clientWidth) found.push(`it is ${viewer.scrollWidth} px wide in ${viewer.clientWidth} px`);
        const boxes = [...document.querySelectorAll("svg.frames > g")].map((group) => {
            const rect = group.querySelector("rect");
            const [x, width, y] = ["x", "width", "y"].map((name) => Number(rect.getAttribute(name)));
            const text = group.querySelector("text");
            if (text !== null && text.getBoundingClientRect().right > rect.getBoundingClientRect().right + 1) found.push(`${text.textContent} leaves its frame`);
            return { x, right: x + width, y, name: group.getAttribute("aria-label") };
        });
        for (const box of boxes) {
            if (box.y > 0 && !boxes.some((p) => p.y === box.y - 19 && p.x <= box.x + 0.011 && p.right >= box.right - 0.011)) found.push(`${box.name} leaves its caller`);
        }
        return found.slice(0, 4);
    }, NODES_MAX);
    expect(faults.length === 0, faults.join("; "));
}

// The file with another name in it, and the file with another tree.
function withName(text) {
    return text.replace('"handle_time"', encode(HOSTILE));
}

const encode = (value) => JSON.stringify(value).replace(/[<>&']/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

function withManyFrames(text, stacks) {
    const part = /class="data">([\s\S]*?)<\/script>/g;
    const data = Object.assign({}, ...[...text.matchAll(part)].map((found) => JSON.parse(found[1])));
    const frames = data.frames.length / 3;
    Object.assign(data, { nodes: [0], selves: [], idleNode: 0, totalUs: 0 });
    for (let i = 0, node = 0, last = 0, up = 0; i < stacks; i++, last = node) {
        if (up > 0) data.nodes.push(-up);
        up = 3 + (i % 5);
        for (let d = 0; d < up; d++) data.nodes.push((i * 7 + d * 3) % frames);
        node += up;
        data.selves.push(node - last, i % 3, i % 1000 === 0 ? 100000 : 10 + i % 7);
        data.totalUs += data.selves.at(-1);
    }
    let first = true;
    return text.replace(part, () => {
        const kept = first ? encode(data) : "{}";
        first = false;
        return `class="data">${kept}</script>`;
    });
}

async function check(name, faults, work) {
    try {
        await work();
    } catch (error) {
        faults.push(String(error.message).split("\n").slice(0, 2).join(" "));
    }
    console.log(`${faults.length === 0 ? "ok" : "FAILED"} ${name}${faults.map((fault) => `\n    ${fault}`).join("")}`);
    failures += faults.length === 0 ? 0 : 1;
    faults.length = 0;
}

const text = fs.readFileSync(files[0], "utf8");
for (const file of files) routes[`/p/${path.basename(file)}`] = file;
routes["/made/hostile.svg"] = { text: withName(text), type: "image/svg+xml" };
routes["/made/many.svg"] = { text: withManyFrames(text, 100000), type: "image/svg+xml" };
const server = await serve(routes);
const picture = (name) => ({ path: path.join(folder, "pictures", `interactive.${name}.png`) });
await withBrowser(folder, async (browser) => {
    const faults = [];
    const page = await newPage(browser, faults);
    page.setDefaultTimeout(10000);
    await browser.grantPermissions(["clipboard-read", "clipboard-write"], { origin: server.url });
    const open = async (where) => { await page.goto("about:blank"); await page.goto(server.url + where); await page.waitForSelector(".viewer"); };

    const first = `/p/${path.basename(files[0])}`;
    for (const work of [zoomsAndGoesBack, searches, switchesStates, obeysKeys, tellsDetails, groupsThreads, labels, isAccessible, restoresFromLink]) {
        await check(work.name, faults, async () => { await open(first); await work(page, browser, faults); });
    }
    for (const file of files) {
        for (const [scheme, width] of [["light", 1400], ["dark", 1400], ["light", 390]]) {
            await check(`${path.basename(file)}, ${scheme}, ${width} px`, faults, async () => {
                await page.emulateMedia({ colorScheme: scheme });
                await page.setViewportSize({ width, height: 844 });
                await open(`/p/${path.basename(file)}`);
                await page.screenshot(picture(`${path.basename(file)}.${scheme}.${width}`));
                await holdsTogether(page);
                if (file === files[0]) await isAccessible(page);
            });
        }
    }
    await page.setViewportSize({ width: 1400, height: 844 });
    await check("hostile names run nothing", faults, async () => {
        await open("/made/hostile.svg");
        const at = page.locator("svg.frames g", { hasText: "window.ran" }).first();
        await at.click();
        await page.keyboard.press("c");
        await page.locator("input[type=search]").fill("onerror");
        await page.waitForTimeout(200);
        expect((await page.locator(".details .name").textContent()).startsWith(HOSTILE), "the name is not shown as it is");
        same(await page.evaluate(() => window.ran), undefined, "a name ran");
        same(await page.locator("img").count(), 0, "images made by a name");
        same(await page.locator("script").count(), 4, "scripts");
        await open(`/made/hostile.svg#at=${encodeURIComponent(HOSTILE)}&find=${encodeURIComponent(HOSTILE)}&threads=${encodeURIComponent(HOSTILE)}`);
        same(await page.evaluate(() => window.ran), undefined, "a link ran");
    });
    await check("500,000 frames", faults, async () => {
        const start = Date.now();
        await open("/made/many.svg");
        const opened = Date.now() - start;
        const times = await page.evaluate(() => {
            const field = document.querySelector("input");
            field.value = "poll";
            const before = performance.now();
            field.dispatchEvent(new Event("input"));
            const searched = performance.now();
            const wide = [...document.querySelectorAll("svg.frames > g")].pop();
            wide.dispatchEvent(new MouseEvent("click", { bubbles: true }));
            return [searched - before, performance.now() - searched].map(Math.round);
        });
        console.log(`    opened in ${opened} ms, searched in ${times[0]} ms, zoomed in ${times[1]} ms`);
        expect(await page.evaluate(() => document.querySelectorAll("*").length) <= NODES_MAX, "too many elements");
    });
});
await server.close();
process.exitCode = failures === 0 ? 0 : 1;
