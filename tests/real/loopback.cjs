// Loaded into a Node server before its own code: listen on a free port of 127.0.0.1 only, and say which.
const { Server } = require("node:net");
const listen = Server.prototype.listen;
Server.prototype.listen = function (...args) {
  this.once("listening", () => console.error(`LISTENING ${this.address().port}`));
  const callbacks = args.filter((value) => typeof value === "function");
  return listen.call(this, { host: "127.0.0.1", port: 0 }, ...callbacks);
};
