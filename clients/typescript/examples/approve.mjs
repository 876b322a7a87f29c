// Wires money once people have allowed it. Started with a gate's number it goes on from there.
import { Holdpoint } from "holdpoint";

const hp = new Holdpoint(); // HOLDPOINT_URL and HOLDPOINT_TOKEN
const payment = { to: "ACME Ltd", amount: "120.00" };
let gate = Number(process.argv[2]);
if (!gate) {
  const pending = await hp.defer("wire", payment, { title: "Pay invoice 7", pinned: ["amount"] });
  gate = pending.id;
  console.log("gate", gate, "asks at", pending.url);
}
const receipt = await hp.resume(gate, {}, async (call) => {
  console.log("wiring", call.arguments, "under", call.key); // bank.wire(call.arguments, call.key)
  return { id: "tx_1", changes: call.changes };
});
console.log("done;", ...(receipt.changes.length ? receipt.changes : ["as asked"]));
