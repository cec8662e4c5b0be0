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
