// Opens SVG files in the browser where no script may run, alone and as an image of a page, and measures what it made of them.
//
//   run.sh FOLDER svg_draws.mjs FILE...
import path from "node:path";

import { newPage, serve, withBrowser } from "./page.mjs";

// Runs in the page: frames whose text is wider than they are, or that leave the picture.
function measure() {
    const faults = [];
    if (document.documentElement.localName !== "svg") return ["it is not drawn as a picture: " + document.documentElement.textContent.slice(0, 200)];
    if (document.querySelector("g.still") === null) return ["the still picture is gone"];
    const area = document.querySelector("svg.frames");
    for (const group of area === null ? [] : area.querySelectorAll("g")) {
        const rect = group.querySelector("rect").getBoundingClientRect();
        const whole = area.getBoundingClientRect();
        const text = group.querySelector("text");
        if (rect.left < whole.left - 0.1 || rect.right > whole.right + 0.1) faults.push(`${text?.textContent} leaves the picture`);
        if (text !== null && text.getBoundingClientRect().right > rect.right + 0.5) faults.push(`the text ${text.textContent} leaves its frame`);
        if (getComputedStyle(group.querySelector("rect")).fill === "rgb(0, 0, 0)") faults.push(`${text?.textContent} has no colour`);
    }
    for (const text of document.querySelectorAll("g.still > text")) {
        if (text.getBoundingClientRect().right > document.documentElement.getBoundingClientRect().right)
            faults.push(`the line ${text.textContent} leaves the page`);
    }
    return faults;
}

async function open(browser, server, folder, file) {
    const faults = [];
    const page = await newPage(browser, faults);
    const name = path.basename(file);
    try {
        for (const [scheme, width] of [["light", 1400], ["dark", 1400], ["light", 390]]) {
            await page.emulateMedia({ colorScheme: scheme });
            await page.setViewportSize({ width, height: 800 });
            await page.goto(`${server.url}/p/${name}?still`);
            faults.push(...(await page.evaluate(measure)).slice(0, 5).map((fault) => `${scheme} ${width}: ${fault}`));
            await page.screenshot({ path: path.join(folder, "pictures", `${name}.${scheme}.${width}.png`) });
        }
        await page.goto(`${server.url}/blank`);
        await page.setContent(`<img id="i" style="max-width: 100%" src="${server.url}/p/${name}">`);
        await page.waitForFunction(() => document.getElementById("i").complete);
        const size = await page.$eval("#i", (image) => [image.naturalWidth, image.clientWidth]);
        if (size[0] !== 1200 || size[1] < 300) faults.push(`as an image it is ${size} wide`);
    } catch (error) {
        faults.push(String(error.message).split("\n")[0]);
    } finally {
        await page.close();
    }
    return faults;
}

const [folder, ...files] = process.argv.slice(2);
const routes = {};
let failures = 0;
for (const file of files) routes[`/p/${path.basename(file)}`] = file;
const server = await serve(routes);
await withBrowser(folder, async (browser) => {
    for (const file of files) {
        const faults = await open(browser, server, folder, file);
        console.log(`${faults.length === 0 ? "ok" : "FAILED"} ${path.basename(file)}${faults.map((fault) => `\n    ${fault}`).join("")}`);
        failures += faults.length === 0 ? 0 : 1;
    }
});
await server.close();
process.exitCode = failures === 0 ? 0 : 1;
