"""The contrast ratio of WCAG 2.1 (1.4.3, 1.4.11), as JavaScript for tests of what is read."""

# contrast(ink, ground) of two colours as getComputedStyle gives them or as [r, g, b]: from 1 to 21.
CONTRAST = """
    const rgba = color => {
        const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
        return [r, g, b, a];
    };
    const light = color => {
        const [r, g, b] = (typeof color === "string" ? rgba(color) : color).map(v => v / 255)
            .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const contrast = (ink, ground) => {
        const pair = [light(ink), light(ground)];
        return Math.max(...pair) / Math.min(...pair);
    };
"""

# What elements of a selector say with less contrast (WCAG 2.1, 1.4.3) than 4.5 to what lies under
# it: grounds of the elements around, and areas of a picture that were drawn before the text.
FAINT = (
    f"selector => {{ {CONTRAST}"
    + """
    const over = ([r, g, b, a], below) => [r, g, b].map((v, i) => a * v + (1 - a) * below[i]);
    const paint = (style, name) => {
        if (style[name] === "none") return [0, 0, 0, 0];
        const [r, g, b, a] = rgba(style[name]);
        return [r, g, b, a * style.opacity * (name === "fill" ? style.fillOpacity : 1)];
    };
    const area = e => {
        const style = getComputedStyle(e);
        if (e instanceof SVGGeometryElement) return paint(style, "fill");
        return e instanceof SVGElement ? [0, 0, 0, 0] : paint(style, "backgroundColor");
    };
    const ratio = (e, box) => {
        const stack = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        if (!stack.includes(e)) return 21;  // scrolled out of sight
        const under = stack.slice(stack.indexOf(e)).reverse();
        const ground = under.reduce((below, one) => over(area(one), below), [255, 255, 255]);
        const ink = paint(getComputedStyle(e), e instanceof SVGElement ? "fill" : "color");
        return contrast(over(ink, ground), ground);
    };
    const said = [...document.querySelectorAll(`${selector} select`)]
        .map(e => [e, e.getBoundingClientRect(), e.value]);
    for (const output of document.querySelectorAll(selector)) {
        const texts = document.createTreeWalker(output, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
            const node = texts.currentNode, range = document.createRange();
            range.selectNodeContents(node);
            const box = range.getClientRects()[0];
            const e = node.parentElement;
            if (/\\w/.test(node.data) && box?.width && !e.closest(":disabled, script"))
                said.push([e, box, node.data.trim().slice(0, 60)]);
        }
    }
    const seen = said.map(([e, box, text]) => [text, ratio(e, box)]);
    return { count: seen.length, faint: seen.filter(([_, seen]) => seen < 4.5) };
}"""
)
