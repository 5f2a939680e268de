// SPDX-License-Identifier: Apache-2.0
#include "cli/chart_plot.h"

const char chart_style[] =
    ".chart{width:100%;height:auto;display:block;font-size:12.5px;overflow:visible}\n"
    ".chart text{fill:var(--muted)}\n"
    ".chart text.axis{fill:var(--fg)}\n"
    ".chart text.value{fill:var(--fg)}\n"
    ".chart .grid{stroke:var(--grid);stroke-width:1;fill:none}\n"
    ".chart .line{fill:none;stroke:currentColor;stroke-width:1.8;stroke-linejoin:round}\n"
    ".chart .mark{fill:currentColor;stroke:var(--bg);stroke-width:.6}\n"
    ".chart .mark:hover,.chart path:hover{opacity:.65}\n"
    ".chart .d1{stroke-dasharray:7 3}\n"
    ".chart .d2{stroke-dasharray:2 3}\n"
    ".chart .d3{stroke-dasharray:9 3 2 3}\n"
    ".c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}\n"
    ".c4{color:var(--c4)}.c5{color:var(--c5)}.c6{color:var(--c6)}.c7{color:var(--c7)}\n"
    ".c8{color:var(--c8)}.c9{color:var(--c9)}.c10{color:var(--c10)}\n"
    ".h0{fill:var(--c0)}.h1{fill:url(#h1)}.h2{fill:url(#h2)}.h3{fill:url(#h3)}\n"
    ".h4{fill:url(#h4)}.h5{fill:url(#h5)}.h6{fill:url(#h6)}.h7{fill:url(#h7)}\n"
    ".h8{fill:url(#h8)}.h9{fill:url(#h9)}.h10{fill:url(#h10)}\n"
    ".q0{fill:var(--q0)}.q1{fill:var(--q1)}.q2{fill:var(--q2)}.q3{fill:var(--q3)}\n"
    ".q4{fill:var(--q4)}.q5{fill:var(--q5)}.q6{fill:var(--q6)}.q7{fill:var(--q7)}\n"
    ".q8{fill:var(--q8)}.none{fill:var(--grid)}\n";

void chart_add_hatchings(struct text *out) {
    static const char *const lines[PLOT_COLOURS] = {NULL,
                                                    "M0 6L6 0M-1 1L1 -1M5 7L7 5",
                                                    "M0 0L6 6M-1 5L1 7M5 -1L7 1",
                                                    "M3 2v2",
                                                    "M0 3h6",
                                                    "M0 0L6 6M0 6L6 0",
                                                    "M3 0v6",
                                                    "M0 3h6M3 0v6",
                                                    "M0 1h6M0 4h6",
                                                    "M1 0v6M4 0v6",
                                                    "M1 1v1.5M4 4v1.5"};

    text_add(out, "<svg width=\"0\" height=\"0\" class=\"hidden\" aria-hidden=\"true\"><defs>\n");
    for (unsigned i = 1; i < PLOT_COLOURS; i++)
        text_addf(
            out,
            "<pattern id=\"h%u\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
            "<path d=\"M0 0h6v6h-6z\" fill=\"var(--c%u)\"/>"
            "<path d=\"%s\" stroke=\"var(--bg)\" stroke-width=\"1.2\" opacity=\".65\"/></pattern>\n",
            i, i, lines[i]);
    text_add(out, "</defs></svg>\n");
}

void plot_marker(struct text *out, unsigned look, double x, double y, double size) {
    const double s = size;

    text_addf(out, "<path class=\"mark c%u\" d=\"", look % PLOT_COLOURS);
    switch (look % 5) {
    case 0: /* a disc */
        text_addf(out, "M%.1f %.1fa%.1f %.1f 0 1 0 %.1f 0a%.1f %.1f 0 1 0 %.1f 0z", x - s, y, s, s,
                  2 * s, s, s, -2 * s);
        break;
    case 1: /* a square */
        text_addf(out, "M%.1f %.1fh%.1fv%.1fh%.1fz", x - s, y - s, 2 * s, 2 * s, -2 * s);
        break;
    case 2: /* a triangle */
        text_addf(out, "M%.1f %.1fl%.1f %.1fh%.1fz", x, y - 1.2 * s, 1.2 * s, 2.2 * s, -2.4 * s);
        break;
    case 3: /* on its tip */
        text_addf(out, "M%.1f %.1fl%.1f %.1fh%.1fz", x, y + 1.2 * s, 1.2 * s, -2.2 * s, -2.4 * s);
        break;
    default: /* a diamond */
        text_addf(out, "M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz", x, y - 1.4 * s, 1.4 * s,
                  1.4 * s, -1.4 * s, 1.4 * s, -1.4 * s, -1.4 * s);
    }
    text_add(out, "\"");
}
