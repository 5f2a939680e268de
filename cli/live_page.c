// SPDX-License-Identifier: Apache-2.0
#include "cli/live_page.h"

#include "cli/page.h"

static const char style[] =
    ".skip{position:absolute;left:-999em}\n"
    ".skip:focus{position:static;display:inline-block;margin:8px}\n"
    ".live{display:flex;flex-wrap:wrap;gap:.4em 1em;align-items:center;margin:.6em 0}\n"
    ".live button{font:inherit;color:inherit;background:var(--box);border:1px solid var(--muted);"
    "border-radius:6px;padding:.3em 1em;min-width:7em;min-height:2.4em;cursor:pointer}\n"
    "#state::before{content:\"\\25cf\\a0\";color:var(--muted)}\n"
    "#state.live-on::before{color:var(--c2)}\n"
    "#state.live-lost{font-weight:600}\n"
    "#state.live-lost::before{color:var(--c1)}\n"
    "#figures:focus{outline:none}\n";

/*
 * morph() makes one tree look like another and leaves alone what is equal, so that whatever has the
 * focus, was scrolled or was folded stays as it is. Where the shapes differ the new one takes the
 * place, and the focus goes to what stands there now.
 */
static const char script[] =
    "(function () {\n"
    "  'use strict';\n"
    "  var box = document.getElementById('figures'), state = document.getElementById('state');\n"
    "  var pause = document.getElementById('pause'), from = box.getAttribute('data-from');\n"
    "  var every = 1000, wait = every, timer = 0, asking = false, paused = false, tag = '';\n"
    "\n"
    "  function say(words, kind) {\n"
    "    if (state.textContent !== words) state.textContent = words;\n"
    "    state.className = kind;\n"
    "  }\n"
    "  function sameNames(a, b) {\n"
    "    if (a.nodeName !== b.nodeName || a.attributes.length !== b.attributes.length) return false;\n"
    "    for (var i = 0; i !== a.attributes.length; i++)\n"
    "      if (b.getAttribute(a.attributes[i].name) !== a.attributes[i].value) return false;\n"
    "    return true;\n"
    "  }\n"
    "  function morph(a, b) {\n"
    "    if (a.nodeName === 'DETAILS' && b.nodeName === 'DETAILS') b.open = a.open;\n"
    "    if (a.isEqualNode(b)) return;\n"
    "    if (a.nodeType !== 1 || b.nodeType !== 1 || a.nodeName.toLowerCase() === 'svg' ||\n"
    "        !sameNames(a, b) || a.childNodes.length !== b.childNodes.length)\n"
    "      return replace(a, b);\n"
    "    var old = Array.from(a.childNodes), fresh = Array.from(b.childNodes);\n"
    "    old.forEach(function (node, i) { morph(node, fresh[i]); });\n"
    "  }\n"
    "  function focusable(root) { return Array.from(root.querySelectorAll('summary,[tabindex]')); }\n"
    "  function replace(a, b) {\n"
    "    var at = -1, was = document.activeElement;\n"
    "    if (a.nodeType === 1 && a.contains(was)) at = focusable(a).indexOf(was);\n"
    "    a.replaceWith(b);\n"
    "    if (at !== -1) (focusable(b)[at] || box).focus({preventScroll: true});\n"
    "  }\n"
    "  function foldsOf(root) {\n"
    "    return Array.from(root.querySelectorAll('details')).map(function (one) {\n"
    "      var head = one.querySelector('thead');\n"
    "      return [head ? head.textContent : '', one];\n"
    "    });\n"
    "  }\n"
    "  function show(markup) {\n"
    "    var page = new DOMParser().parseFromString(markup, 'text/html');\n"
    "    var folds = new Map(foldsOf(box)), fresh = document.createElement('div');\n"
    "    foldsOf(page).forEach(function (pair) {\n"
    "      var old = folds.get(pair[0]);\n"
    "      if (old) pair[1].open = old.open;\n"
    "    });\n"
    "    fresh.append.apply(fresh, Array.from(document.adoptNode(page.body).childNodes));\n"
    "    if (fresh.childNodes.length !== box.childNodes.length) {\n"
    "      var at = focusable(box).indexOf(document.activeElement);\n"
    "      box.replaceChildren.apply(box, Array.from(fresh.childNodes));\n"
    "      if (at !== -1) (focusable(box)[at] || box).focus({preventScroll: true});\n"
    "      return;\n"
    "    }\n"
    "    var old = Array.from(box.childNodes), now = Array.from(fresh.childNodes);\n"
    "    old.forEach(function (node, i) { morph(node, now[i]); });\n"
    "  }\n"
    "  function next() {\n"
    "    clearTimeout(timer);\n"
    "    if (!paused) if (!document.hidden) timer = setTimeout(look, wait);\n"
    "  }\n"
    "  async function look() {\n"
    "    if (asking) return;\n"
    "    asking = true;\n"
    "    var stop = new AbortController(), late = setTimeout(function () { stop.abort(); }, 15000);\n"
    "    try {\n"
    "      var headers = tag ? {'If-None-Match': tag} : {};\n"
    "      var answer = await fetch(from, {headers: headers, cache: 'no-store', signal: stop.signal});\n"
    "      if (answer.status === 200) {\n"
    "        var markup = await answer.text();\n"
    "        if (!paused) { show(markup); tag = answer.headers.get('ETag') || ''; }\n"
    "      } else if (answer.status !== 304) throw new Error(answer.status);\n"
    "      wait = every;\n"
    "      if (!paused) say('live', 'live-on');\n"
    "    } catch (error) {\n"
    "      wait = Math.min(2 * wait, 4000);\n"
    "      if (!paused) say('connection lost, trying again', 'live-lost');\n"
    "    }\n"
    "    clearTimeout(late);\n"
    "    asking = false;\n"
    "    next();\n"
    "  }\n"
    "  pause.addEventListener('click', function () {\n"
    "    paused = !paused;\n"
    "    pause.textContent = paused ? 'Go on' : 'Pause';\n"
    "    say(paused ? 'paused' : 'live', paused ? '' : 'live-on');\n"
    "    wait = every;\n"
    "    if (paused) clearTimeout(timer); else look();\n"
    "  });\n"
    "  document.addEventListener('visibilitychange', function () {\n"
    "    if (document.hidden) clearTimeout(timer); else if (!paused) look();\n"
    "  });\n"
    "  pause.hidden = false;\n"
    "  say('live', 'live-on');\n"
    "  look();\n"
    "})();\n";

void live_page_begin(struct text *out, const char *title, const char *icon, const char *from,
                     const char *nonce) {
    struct text head = {0};

    text_addf(&head, "<link rel=\"icon\" href=\"%s\"/>\n", icon);
    text_add(&head, "<noscript><meta http-equiv=\"refresh\" content=\"5\"/></noscript>\n");
    text_addf(&head, "<style nonce=\"%s\">\n%s</style>\n", nonce, style);
    page_begin(out, &(struct page_head){.title = title,
                                        .extra_head = text_words(&head),
                                        .extra_body = "<a class=\"skip\" href=\"#figures\">Skip to "
                                                      "the figures</a>\n",
                                        .nonce = nonce});
    text_release(&head);
    text_add(out, "<div class=\"live\"><span id=\"state\" role=\"status\">as of now</span>\n"
                  "<button id=\"pause\" type=\"button\" hidden=\"hidden\">Pause</button>\n"
                  "<a href=\"/\">All runs</a> <a href=\"/metrics\">Metrics</a></div>\n");
    text_add(out, "<div id=\"figures\" tabindex=\"-1\" data-from=\"");
    text_add_escaped(out, from);
    text_add(out, "\">\n");
}

void live_page_end(struct text *out, const char *nonce) {
    text_add(out, "</div>\n");
    text_addf(out, "<script nonce=\"%s\">\n", nonce);
    text_add(out, script);
    text_add(out, "</script>\n");
    page_end(out);
}
