// Runs Perfetto's trace processor (WebAssembly) under node as a byte pipe: RPC requests on stdin, replies on stdout.
// The folder in argv[2] holds trace_processor.wasm and engine_bundle.node.js, the worker script of Perfetto's own UI.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');

const folder = process.argv[2];
// The bundle expects to live in a web worker.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
Object.defineProperty(globalThis, 'location', { value: { href: `file://${folder}/` }, configurable: true });
globalThis.engineWasm = new Uint8Array(fs.readFileSync(path.join(folder, 'trace_processor.wasm')));

// The wasm is the 32-bit build and must not be fetched; and the bridge must be reachable from here.
const changes = [
  ['this.useMemory64 = hasMemory64Support();', 'this.useMemory64 = false;'],
  ['locateFile: (s) => s,', 'locateFile: (s) => s, wasmBinary: globalThis.engineWasm,'],
  ['new wasm_bridge_1.WasmBridge();', '(globalThis.engineBridge = new wasm_bridge_1.WasmBridge());'],
];
let script = fs.readFileSync(path.join(folder, 'engine_bundle.node.js'), 'utf8');
for (const [before, after] of changes) {
  if (!script.includes(before)) throw new Error(`the bundle has changed: no ${before}`);
  script = script.replace(before, after);
}
const maps = script.indexOf('\n;(self.__SOURCEMAPS');
if (maps >= 0) script = script.slice(0, maps);
console.log = console.warn = console.info = (...words) => process.stderr.write(`${words.join(' ')}\n`);
vm.runInThisContext(script, { filename: 'engine_bundle.js' });

const bridge = globalThis.engineBridge;
bridge.messagePort = {
  postMessage: (reply) => {
    for (let sent = 0; sent < reply.length; ) {
      try {
        sent += fs.writeSync(1, reply, sent);
      } catch (e) {
        if (e.code !== 'EAGAIN') throw e;
      }
    }
  },
};

function serve() {
  if (!bridge.reqBufferAddr) return setTimeout(serve, 5);
  const buffer = Buffer.alloc(8 << 20);
  for (;;) {
    let count;
    try {
      count = fs.readSync(0, buffer, 0, buffer.length);
    } catch (e) {
      if (e.code === 'EAGAIN') continue;
      if (e.code !== 'EOF') throw e;
      count = 0;
    }
    if (count === 0) process.exit(0);
    bridge.onMessage({ data: new Uint8Array(buffer.buffer, buffer.byteOffset, count) });
  }
}
serve();
