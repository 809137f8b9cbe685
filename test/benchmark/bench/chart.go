// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// bar is a figure beside its baseline; less is better.
type bar struct {
	label string
	// ratio is the figure in units of its baseline.
	ratio float64
	text  string
}

// publishedPrefix begins the unit of a baseline that others published for the unit that follows.
const publishedPrefix = "published-"

// barsOf returns the figures that have a baseline: those with a unit x-<baseline>, of-<baseline> (a
// rate, of which more is better), or with a published value of the same unit.
func barsOf(f figure) []bar {
	_, label, _ := strings.Cut(f.Name, "/")
	var bars []bar
	for _, unit := range slices.Sorted(maps.Keys(f.Samples)) {
		value := median(f.Samples[unit])
		switch published := f.Samples[publishedPrefix+unit]; {
		case value <= 0:
		case strings.HasPrefix(unit, "x-"):
			bars = append(bars, bar{label, value, number(value) + " x " + unit[len("x-"):]})
		case strings.HasPrefix(unit, "of-"):
			bars = append(bars, bar{label, 1 / value, number(value) + " of " + unit[len("of-"):]})
		case len(published) > 0:
			bars = append(bars, bar{label, value / median(published), fmt.Sprintf("%s %s; published %s", number(value), unit, number(median(published)))})
		}
	}
	return bars
}

func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2]
}

// number has three significant digits.
func number(value float64) string {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 3, 64), 64)
	if err != nil {
		return fmt.Sprint(value)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// charts draws a chart of each group that has baselines, by the name of its file.
func charts(figures []figure) map[string]string {
	bars, machines := map[string][]bar{}, map[string]string{}
	for _, f := range figures {
		bars[f.group()] = append(bars[f.group()], barsOf(f)...)
		machines[f.group()] = f.Machine
	}
	files := map[string]string{}
	for group, all := range bars {
		if len(all) > 0 {
			files[group+".svg"] = draw(group, machines[group], all)
		}
	}
	return files
}

// The sizes of a chart in pixels. Bars that are longer than most times their baseline are cut.
const (
	width, rowHeight, top, bottom = 760, 24, 52, 34
	barsAt, barsWidth             = 250, 260
	textAt                        = barsAt + barsWidth + 14
	most                          = 4.0
)

const style = `<style>
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-weight: 600; font-size: 15px }
.minor { fill: #59636e }
.better { fill: #2f6fbf }
.worse { fill: #c2570c }
.baseline { stroke: #59636e; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.minor { fill: #9198a1 }
.better { fill: #5c9ce6 }
.worse { fill: #e8894a }
.baseline { stroke: #9198a1 }
}
</style>
`

// draw draws bars from top to bottom, with a line at the baseline. Screen readers get the title and
// all values.
func draw(group, machine string, bars []bar) string {
	scale := 1.0
	for _, each := range bars {
		scale = max(scale, min(each.ratio, most))
	}
	unit := barsWidth / scale
	height := top + rowHeight*len(bars) + bottom
	var values []string
	for _, each := range bars {
		values = append(values, each.label+": "+each.text)
	}
	var svg strings.Builder
	fmt.Fprintf(&svg, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"title values\">\n",
		width, height, width, height)
	fmt.Fprintf(&svg, "<title id=\"title\">Results of group %s beside their baselines</title>\n<desc id=\"values\">%s</desc>\n%s",
		html.EscapeString(group), html.EscapeString(strings.Join(values, ". ")+"."), style)
	write := func(class string, x, y int, text string) {
		fmt.Fprintf(&svg, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(text))
	}
	write("title", 8, 22, group)
	write("minor", 8, 40, "Shorter is better. The line is the baseline. "+strings.TrimPrefix(machine, "machine: "))
	for i, each := range bars {
		y, class := top+i*rowHeight, "better"
		if each.ratio > 1 {
			class = "worse"
		}
		length, text := unit*each.ratio, each.text
		if each.ratio > scale {
			length, text = barsWidth, text+" (cut)"
		}
		write("label", 8, y+17, each.label)
		fmt.Fprintf(&svg, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"16\" rx=\"2\"/>\n", class, barsAt, y+4, max(length, 1))
		write("value", textAt, y+17, text)
	}
	baseline, end := barsAt+unit, top+rowHeight*len(bars)
	fmt.Fprintf(&svg, "<line class=\"baseline\" x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\"/>\n", baseline, top, baseline, end+4)
	fmt.Fprintf(&svg, "<text class=\"minor\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">baseline</text>\n</svg>\n", baseline, end+20)
	return svg.String()
}
