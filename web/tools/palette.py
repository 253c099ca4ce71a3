#!/usr/bin/env python3
"""Prints the fill rules of flame.css between its `palette` marks: run by hand when the palette is to change.

Hues are equally spaced in OKLCH, so that all boxes look equally bright, and no neighbours in the hash look alike by
lightness alone. Three tints a hue tell neighbouring functions of one module apart. Text contrast is checked here.
"""
import math

HUES = 20
LIGHT = [(0.835, 0.098), (0.865, 0.082), (0.805, 0.112)]  # (lightness, chroma) by tint; dark text
DARK = [(0.445, 0.078), (0.485, 0.072), (0.41, 0.078)]  # light text
NATIVE_CHROMA = 0.36  # native frames keep their module's hue and lose most of its colour
LIGHT_TEXT, DARK_TEXT = "#1c1917", "#f5f5f4"


def srgb(lightness, chroma, hue):
    while True:
        a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
        l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
        m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
        s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
        rgb = (
            4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
            -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
            -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s,
        )
        if all(-1e-4 <= c <= 1.0001 for c in rgb):
            return rgb
        chroma *= 0.97  # out of gamut: less colourful, same lightness


def code(rgb):
    def channel(c):
        c = min(max(c, 0), 1)
        return round(255 * (12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055))

    return "#%02x%02x%02x" % tuple(channel(c) for c in rgb)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    a, b = sorted((luminance(a), luminance(b)))
    return (b + 0.05) / (a + 0.05)


def rules(tints, text):
    for family, factor in (("p", 1.0), ("n", NATIVE_CHROMA)):
        for hue in range(HUES):
            row = []
            for tint, (lightness, chroma) in enumerate(tints):
                fill = code(srgb(lightness, chroma * factor, 25 + hue * 360 / HUES))
                assert contrast(fill, text) >= 4.5, (family, hue, tint, contrast(fill, text))
                row.append(f".{family}{hue}{'abc'[tint]}{{fill:{fill}}}")
            yield " ".join(row)


print("/* palette: printed by web/tools/palette.py */")
print("\n".join(rules(LIGHT, LIGHT_TEXT)))
print("@media (prefers-color-scheme: dark) {")
print("\n".join(rules(DARK, DARK_TEXT)))
print("}")
print("/* end of palette */")
