// <hp-passkey>: a form whose button asks the browser for a passkey, and sends its answer. [data-options] holds what to ask,
// or [data-url] the address that returns it; [data-make] makes a new passkey. Hidden where there is no script or no passkeys.

const BINARY = ["challenge", "id", "rawId", "clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];

class Passkey extends HTMLElement {
  connectedCallback() {
    if (!globalThis.PublicKeyCredential || this.form) return;
    this.form = this.querySelector("form");
    this.wrong = this.querySelector(":scope > [role=alert]");
    this.hidden = false;
    this.form.addEventListener("submit", (event) => this.#submit(event));
  }

  async #submit(event) {
    event.preventDefault();
    this.wrong.hidden = true;
    const button = this.form.querySelector("button");
    button.disabled = true;
    try {
      const asked = decoded((await this.#options()).publicKey);
      const options = { publicKey: asked };
      const made = this.hasAttribute("data-make");
      const answer = await (made ? navigator.credentials.create(options) : navigator.credentials.get(options));
      this.form.elements.credential.value = JSON.stringify(encoded(answer));
      this.form.submit();
    } catch (error) {
      this.wrong.textContent = words(error);
      this.wrong.hidden = false;
      button.disabled = false;
    }
  }

  async #options() {
    if (this.dataset.options) return JSON.parse(this.dataset.options);
    const answer = await fetch(this.dataset.url, { headers: { Accept: "application/json" }, cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    return (await answer.json()).request_options;
  }
}

function words(error) {
  if (error.name === "NotAllowedError") return "No passkey was used. Try again when you are ready.";
  if (error.name === "InvalidStateError") return "This device has a passkey for your account already.";
  if (error.name === "SecurityError") return "Passkeys do not work at this address. Ask your administrator which one.";
  return "The passkey did not work. Reload the page and try again.";
}

// The server writes bytes as base64url, the browser takes and gives buffers.
function decoded(asked) {
  const list = (found) => found?.map((each) => ({ ...each, id: bytes(each.id) }));
  return {
    ...asked,
    challenge: bytes(asked.challenge),
    ...(asked.user && { user: { ...asked.user, id: bytes(asked.user.id) } }),
    ...(asked.excludeCredentials && { excludeCredentials: list(asked.excludeCredentials) }),
    ...(asked.allowCredentials && { allowCredentials: list(asked.allowCredentials) }),
  };
}

function encoded(answer) {
  const response = {};
  for (const name of BINARY) if (answer.response[name]) response[name] = text(answer.response[name]);
  return {
    id: answer.id, rawId: text(answer.rawId), type: answer.type, response,
    authenticatorAttachment: answer.authenticatorAttachment, clientExtensionResults: answer.getClientExtensionResults(),
  };
}

function bytes(written) {
  const plain = atob(written.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (each) => each.charCodeAt(0));
}

function text(buffer) {
  const plain = String.fromCharCode(...new Uint8Array(buffer));
  return btoa(plain).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

customElements.define("hp-passkey", Passkey);
