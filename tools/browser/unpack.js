// node unpack.js FOLDER: the packed Chromium of this folder's package, and the libraries that a
// machine without any browser may lack.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { pipeline } = require("node:stream/promises");
const zlib = require("node:zlib");
const tar = require("tar-fs");

const packed = path.join(__dirname, "node_modules", "@sparticuz", "chromium", "bin");

/** Whole or not at all: what is half is at another name. */
async function unpack(name, to, into) {
  const half = `${to}.half`;
  fs.rmSync(half, { recursive: true, force: true });
  const from = fs.createReadStream(path.join(packed, name));
  await pipeline(from, zlib.createBrotliDecompress(), into(half));
  fs.rmSync(to, { recursive: true, force: true });
  fs.renameSync(half, to);
}

(async () => {
  const [folder] = process.argv.slice(2);
  fs.mkdirSync(folder, { recursive: true });
  await unpack("al2023.tar.br", path.join(folder, "libraries"), (to) => tar.extract(to));
  await unpack("chromium.br", path.join(folder, "chromium"), (to) =>
    fs.createWriteStream(to, { mode: 0o755 }));
})();
