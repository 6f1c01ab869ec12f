// A page of the system's Chromium, and a small server for what it shows. Nothing leaves this machine.
import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json",
                ".svg": "image/svg+xml", ".woff2": "font/woff2", ".png": "image/png", ".ico": "image/x-icon" };

const FLAGS = ["--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
               "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
               "--disable-sync"];

// What npm installed in the folder.
export function packages(folder) {
    return createRequire(path.join(path.resolve(folder), "package.json"));
}

// Serves files, and an empty page at /blank: routes maps a prefix of the URL to a folder, to a single file or to { text, type }.
// With "?still" no script may run in what is served. Returns { url, close }.
export function serve(routes) {
    const server = http.createServer((request, response) => {
        const wanted = decodeURIComponent(new URL(request.url, "http://127.0.0.1/").pathname);
        if (wanted === "/blank") {
            response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html>");
            return;
        }
        const prefix = Object.keys(routes).filter((p) => wanted.startsWith(p)).sort((a, b) => b.length - a.length)[0];
        const policy = request.url.endsWith("?still") ? { "content-security-policy": "script-src 'none'" } : {};
        if (typeof routes[prefix] === "object") {
            response.writeHead(200, { "content-type": routes[prefix].type, ...policy }).end(routes[prefix].text);
            return;
        }
        const root = prefix === undefined ? undefined : path.resolve(routes[prefix]);
        const file = root === undefined ? undefined : path.join(root, wanted.slice(prefix.length));
        if (file === undefined || !(file === root || file.startsWith(root + path.sep)) || !fs.existsSync(file) ||
            !fs.statSync(file).isFile()) {
            response.writeHead(404).end();
            return;
        }
        response.writeHead(200, { "content-type": TYPES[path.extname(file)] ?? "application/octet-stream", ...policy });
        fs.createReadStream(file).pipe(response);
    });
    return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve({
        url: `http://127.0.0.1:${server.address().port}`,
        close: () => new Promise((closed) => { server.closeAllConnections(); server.close(closed); }),
    })));
}

// Runs work(context) in a browser with a fresh profile that is removed afterwards. Errors of pages are gathered in
// context.faults.
export async function withBrowser(folder, work) {
    const { chromium } = packages(folder)("playwright-core");
    const profile = fs.mkdtempSync(path.join(os.tmpdir(), "stallgraph-browser-"));
    const browser = await chromium.launchPersistentContext(profile, {
        executablePath: process.env.CHROMIUM, headless: true, args: FLAGS, viewport: { width: 1400, height: 900 } });
    try {
        return await work(browser);
    } finally {
        await browser.close();
        fs.rmSync(profile, { recursive: true, force: true });
    }
}

// A new page; what it throws, or asks in a dialog, ends up in the list.
export async function newPage(browser, faults) {
    const page = await browser.newPage();
    page.on("pageerror", (error) => faults.push(`the page threw: ${error.message}`));
    page.on("dialog", (dialog) => { faults.push(`a dialog: ${dialog.message()}`); dialog.dismiss(); });
    return page;
}
