// Translates what scripts say, by the catalogue that the page loads before them; without one it stays as written here.
// %(name)s in a sentence stands for the value of that name.
const { django } = globalThis;

export function gettext(words, values = {}) {
  return filled(django?.gettext(words) ?? words, values);
}

export function ngettext(one, many, count, values = {}) {
  return filled(django?.ngettext(one, many, count) ?? (count === 1 ? one : many), { count, ...values });
}

function filled(words, values) {
  return words.replace(/%\((\w+)\)s/g, (all, name) => values[name]);
}
