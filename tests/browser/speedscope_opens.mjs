// Opens speedscope files in the real speedscope, and compares what it shows with what the file says.
//
//   run.sh FOLDER speedscope_opens.mjs FILE...
//   run.sh FOLDER speedscope_opens.mjs --self-test FILE     faulty copies of the file must be noticed
import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";

import { newPage, packages, serve, withBrowser } from "./page.mjs";

const LOAD_TIMEOUT_MS = 60000;
const ROWS_COMPARED = 12; // of the sandwich, which draws only what is in view

function readProfile(file) {
    const bytes = fs.readFileSync(file);
    return JSON.parse((bytes[0] === 0x1f ? zlib.gunzipSync(bytes) : bytes).toString("utf8"));
}

function validate(folder, data) {
    const require = packages(folder);
    const Ajv = require("ajv");
    const schema = JSON.parse(fs.readFileSync(
        path.join(folder, "node_modules/speedscope/dist/release/file-format-schema.json"), "utf8"));
    const check = new Ajv({ strict: false }).compile(schema);
    return check(data) ? [] : [`the schema: ${JSON.stringify(check.errors.slice(0, 3))}`];
}

// "6.65s", "250.00ms", "1:05", with a share behind it or not -> seconds.
function parseTime(text) {
    const found = /^\s*([\d.,]+)(ns|µs|μs|ms|s)/.exec(text);
    const minutes = /^\s*(\d+):(\d+(?:\.\d+)?)/.exec(text);
    if (minutes) return Number(minutes[1]) * 60 + Number(minutes[2]);
    if (!found) return NaN;
    const unit = { ns: 1e-9, "µs": 1e-6, "μs": 1e-6, ms: 1e-3, s: 1 }[found[2]];
    return Number(found[1].replaceAll(",", "")) * unit;
}

function near(a, b) {
    return Math.abs(a - b) <= 0.01 * Math.max(a, b) + 1e-6;
}

function seconds(profile, weight) {
    return weight * { nanoseconds: 1e-9, microseconds: 1e-6 }[profile.unit];
}

// Time of a profile in samples that have frames: the viewer's list leaves gaps out.
function sampledSeconds(profile) {
    return seconds(profile, profile.weights.reduce((sum, w, i) => sum + (profile.samples[i].length > 0 ? w : 0), 0));
}

// Per frame: total (each sample once) and self, in seconds.
function totals(profile) {
    const result = new Map();
    const entry = (frame) => {
        if (!result.has(frame)) result.set(frame, { total: 0, self: 0 });
        return result.get(frame);
    };
    profile.samples.forEach((sample, i) => {
        const weight = seconds(profile, profile.weights[i]);
        for (const frame of new Set(sample)) entry(frame).total += weight;
        if (sample.length > 0) entry(sample[sample.length - 1]).self += weight;
    });
    return result;
}

const squeeze = (text) => text.replace(/[\s\u0000-\u001f]+/g, " ").trim();

async function checkList(page, data) {
    const faults = [];
    if (data.profiles.length === 1) return faults; // the viewer has no list of one
    await page.keyboard.press("t");
    await page.waitForSelector("tr[title] > td", { timeout: 10000 });
    const rows = await page.$$eval("tr[title]", (found) => found.map((row) => [...row.querySelectorAll("td")].map((td) => td.textContent)));
    if (rows.length !== data.profiles.length) faults.push(`${rows.length} profiles listed, not ${data.profiles.length}`);
    rows.forEach((row, i) => {
        const profile = data.profiles[i];
        if (squeeze(row[1]) !== squeeze(profile.name)) faults.push(`profile ${i} is called ${JSON.stringify(row[1])}`);
        if (!near(parseTime(row[2]), sampledSeconds(profile)))
            faults.push(`profile ${i} weighs ${row[2]}, not ${sampledSeconds(profile)} s`);
    });
    await page.keyboard.press("Escape");
    return faults;
}

async function checkSandwich(page, data) {
    const faults = [];
    const byName = new Map();
    for (const [frame, times] of totals(data.profiles[0])) {
        const name = squeeze(data.shared.frames[frame].name);
        byName.set(name, [...(byName.get(name) ?? []), times]);
    }
    await page.keyboard.press("3");
    if (byName.size === 0) return faults;
    await page.waitForFunction(() => [...document.querySelectorAll("tr")].some((row) => row.children.length === 3 && /%/.test(row.textContent)),
                               undefined, { timeout: 10000 });
    const rows = await page.$$eval("tr", (found) => found.map((row) => [...row.children].map((td) => td.textContent)));
    const shown = rows.filter((row) => row.length === 3 && /\d/.test(row[0]) && /%/.test(row[0])).slice(0, ROWS_COMPARED);
    if (shown.length < Math.min(ROWS_COMPARED, byName.size)) faults.push(`only ${shown.length} rows in the sandwich`);
    for (const [total, self, name] of shown) {
        const candidates = byName.get(squeeze(name)) ?? [];
        if (!candidates.some((times) => near(times.total, parseTime(total)) && near(times.self, parseTime(self))))
            faults.push(`the sandwich says ${total} and ${self} of ${JSON.stringify(name)}, the file ${JSON.stringify(candidates)}`);
    }
    return faults;
}

// Opens one file, looks at every view, and returns what is wrong.
async function open(browser, server, folder, file) {
    const faults = [];
    const data = readProfile(file);
    const page = await newPage(browser, faults);
    const name = path.basename(file);
    const picture = (view) => page.screenshot({ path: path.join(folder, "pictures", `${name}.${view}.png`) });
    try {
        await page.goto(`${server.url}/index.html#profileURL=${encodeURIComponent("/p/" + name)}&view=left-heavy`);
        await page.waitForFunction(() => document.title.endsWith(" - speedscope") || /Something went wrong/.test(document.body.textContent),
                                   undefined, { timeout: LOAD_TIMEOUT_MS });
        const body = await page.textContent("body");
        if (/Something went wrong/.test(body)) return [...faults, "Something went wrong"];
        if (!/Left Heavy/.test(body)) faults.push("no Left Heavy");
        const wanted = data.profiles.length > 1 ? `${data.profiles[0].name} (1/${data.profiles.length})` : data.profiles[0].name;
        if (!body.includes(wanted)) faults.push(`${wanted} is not shown first`);
        await page.waitForTimeout(300);
        await picture("left-heavy");
        faults.push(...await checkList(page, data));
        await page.keyboard.press("1");
        for (let i = 0; i < Math.min(data.profiles.length, 30); i++) {
            await page.waitForTimeout(60);
            if (i < 2) await picture(`time-order-${i}`);
            await page.keyboard.press("n");
        }
        for (let i = 0; i < Math.min(data.profiles.length, 30); i++) await page.keyboard.press("p");
        faults.push(...await checkSandwich(page, data));
        await picture("sandwich");
    } catch (error) {
        faults.push(String(error.message).split("\n")[0]);
    } finally {
        await page.close();
    }
    return faults;
}

async function checkFiles(browser, folder, files) {
    const release = path.join(folder, "node_modules/speedscope/dist/release");
    const routes = { "/": release };
    for (const file of files) routes[`/p/${path.basename(file)}`] = file;
    const server = await serve(routes);
    const result = [];
    try {
        for (const file of files) {
            const faults = [...validate(folder, readProfile(file)), ...await open(browser, server, folder, file)];
            result.push([file, faults]);
        }
    } finally {
        await server.close();
    }
    return result;
}

// Copies of a good file, each with a fault that the checks above are there to see.
function faultyCopies(folder, file) {
    const spoil = {
        "negative-weight": (data) => { data.profiles[0].weights[0] *= -1; },
        "frame-out-of-range": (data) => { data.profiles[1].samples[0] = [data.shared.frames.length]; },
        "lengths-differ": (data) => { data.profiles[0].weights.pop(); },
        "wrong-unit": (data) => { data.profiles[1].unit = "parsecs"; },
    };
    fs.mkdirSync(path.join(folder, "faulty"), { recursive: true });
    return Object.entries(spoil).map(([name, change]) => {
        const data = readProfile(file);
        const copy = path.join(folder, "faulty", `${name}.speedscope.json`);
        change(data);
        fs.writeFileSync(copy, JSON.stringify(data));
        return copy;
    });
}

const [folder, ...rest] = process.argv.slice(2);
const selfTest = rest[0] === "--self-test";
const files = selfTest ? faultyCopies(folder, rest[1]) : rest;
let failures = 0;
await withBrowser(folder, async (browser) => {
    for (const [file, faults] of await checkFiles(browser, folder, files)) {
        const good = selfTest ? faults.length > 0 : faults.length === 0;
        console.log(`${good ? "ok" : "FAILED"} ${path.basename(file)}${faults.map((fault) => `\n    ${fault}`).join("")}`);
        failures += good ? 0 : 1;
    }
});
process.exitCode = failures === 0 ? 0 : 1;
