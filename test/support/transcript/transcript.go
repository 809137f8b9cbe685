// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transcript reads what a document shows of a terminal: who types which command,
// and what it prints. Suites run the commands, so that the document stays true.
package transcript

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

const gap = "..."

// logged is a line that Kubernetes' client library writes to its log.
var logged = regexp.MustCompile(`^[IWEF]\d{4} [0-9:.]+ +\d+ \S+\.go:\d+\] `)

// Transcript is what a document shows.
type Transcript struct {
	// Files are those of which it says "This is `name.yaml`:", by name.
	Files map[string]string
	// Commands are those of its console blocks, in their order.
	Commands []Command
}

// Command is one that somebody types.
type Command struct {
	// Who is the word before the prompt, "$".
	Who string
	// Line is what is typed: one line.
	Line string
	// Prints is what the document says that it prints; "..." stands for anything in a line. If it is
	// empty, the document does not say: the command only has to succeed.
	Prints string
}

// Read reads a document.
func Read(path string) (*Transcript, error) {
	document, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a transcript: %w", err)
	}
	t := &Transcript{Files: map[string]string{}}
	for _, file := range regexp.MustCompile("(?s)This is\\s+`([a-z-]+\\.yaml)`:\n\n```yaml\n(.*?)```").FindAllStringSubmatch(string(document), -1) {
		t.Files[file[1]] = file[2]
	}
	prompt := regexp.MustCompile(`^([a-z]+)\$ (.*)\n$`)
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(document), -1) {
		for line := range strings.Lines(block[1]) {
			if typed := prompt.FindStringSubmatch(line); typed != nil {
				t.Commands = append(t.Commands, Command{Who: typed[1], Line: typed[2]})
				continue
			}
			if len(t.Commands) == 0 {
				return nil, fmt.Errorf("%s: a console block begins with output: %q", path, line)
			}
			t.Commands[len(t.Commands)-1].Prints += line
		}
	}
	return t, nil
}

// Pattern is a regular expression for what the command prints, the gaps filled. A line
// that is nothing but a gap stands for any lines. The last one may end without a break.
func (c Command) Pattern() string {
	if c.Prints == "" {
		return `(?s)^.*$`
	}
	var lines []string
	for line := range strings.Lines(c.Prints) {
		line, _ = strings.CutSuffix(line, "\n")
		if line == gap {
			lines = append(lines, `(?s:.*)`)
			continue
		}
		parts := strings.Split(line, gap)
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		lines = append(lines, strings.Join(parts, `.*`))
	}
	return `^` + strings.Join(lines, `\n`) + `\n?$`
}

// Printed is what a command printed, to compare with its Pattern: all of it but lines of the log
// of Kubernetes' client library. On a machine that stood still for a moment it logs that a request
// waited or that a watch ended, which no document shows. Warnings of an API server, which its file
// warnings.go logs, stay.
func Printed(output string) string {
	var kept strings.Builder
	for line := range strings.Lines(output) {
		if !logged.MatchString(line) || strings.Contains(line, " warnings.go:") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
