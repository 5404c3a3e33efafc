// Reads a recording with @mcap/core, the reader of Foxglove: by its index, and from its beginning to its end. Prints what it found as JSON.
// A file that ends early has no index: `node mcap_read.mjs FILE stream` reads it from its beginning alone.
import { McapIndexedReader, McapStreamReader } from "@mcap/core";
import { decompress } from "fzstd";
import { open, readFile } from "node:fs/promises";

const path = process.argv[2];
const decompressHandlers = { zstd: (data, size) => decompress(data, new Uint8Array(Number(size))) };
const file = await open(path);
const readable = {
  size: async () => BigInt((await file.stat()).size),
  read: async (offset, size) => {
    const data = new Uint8Array(Number(size));
    await file.read(data, 0, Number(size), Number(offset));
    return data;
  },
};
const found = { indexed: {}, streamed: {}, last: {}, attachments: [], metadata: [], chunks: 0 };
const count = (where, topic) => { where[topic] = (where[topic] ?? 0) + 1; };

if (process.argv[3] !== "stream") {
  const reader = await McapIndexedReader.Initialize({ readable, decompressHandlers });
  found.chunks = reader.chunkIndexes.length;
  const topics = [...reader.channelsById.values()].map((channel) => channel.topic);
  for (const topic of topics) { // one by one: that needs the index of each channel
    for await (const message of reader.readMessages({ topics: [topic] })) {
      count(found.indexed, topic);
      found.last[topic] = [message.logTime.toString(), message.data.length];
    }
  }
  for await (const one of reader.readAttachments()) found.attachments.push(one.name);
  for await (const one of reader.readMetadata()) found.metadata.push(Object.fromEntries(one.metadata));
}

const stream = new McapStreamReader({ validateCrcs: true, decompressHandlers });
stream.append(await readFile(path));
const channels = new Map();
for (let record; (record = stream.nextRecord()); ) {
  if (record.type === "Channel") channels.set(record.id, record.topic);
  if (record.type === "Message") count(found.streamed, channels.get(record.channelId));
}
found.done = stream.done();
console.log(JSON.stringify(found));
await file.close();
