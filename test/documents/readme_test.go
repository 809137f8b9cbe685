// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
	"testing"
)

// tutorial is the page with the output of make up.
const tutorial = "docs/getting-started/README.md"

// TestTutorialShowsOutputOfMakeUp compares the unindented lines: steps and titles. Indented lines
// differ between machines.
func TestTutorialShowsOutputOfMakeUp(t *testing.T) {
	printed := outputOf(t)
	launcher := parse(t, root+"/hack/fleet/up.go")
	formats := textsIn(launcher)
	for _, line := range strings.Split(printed, "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			continue
		}
		if !matchesOne(formats, strings.TrimPrefix(line, "==> ")) {
			t.Errorf("%s shows the line %q, which hack/fleet does not print", tutorial, line)
		}
	}
	titles := titlesIn(launcher)
	const least = 10
	if len(titles) < least {
		t.Fatalf("hack/fleet prints %d titles, at least %d are known: its source is not read as it is written", len(titles), least)
	}
	for _, title := range titles {
		if !regexp.MustCompile(`(?m)^(==> )?` + pattern(title) + `$`).MatchString(printed) {
			t.Errorf("hack/fleet prints %q, which %s does not show", title, tutorial)
		}
	}
}

// TestNobodyReadsTheSecretOfATokenBeforeItIsThere checks that pages wait between creating a token
// and reading its values, because the gateway creates the Secret later.
func TestNobodyReadsTheSecretOfATokenBeforeItIsThere(t *testing.T) {
	reads := regexp.MustCompile(`(?m)^ *kubectl .*get secret (\S+) .*\.data\.values`)
	found := 0
	for _, suffix := range []string{".md", "NOTES.txt"} {
		walkIn(t, ".", suffix, func(path, text string) {
			for _, at := range reads.FindAllStringSubmatchIndex(text, -1) {
				found++
				secret := text[at[2]:at[3]]
				waits := regexp.MustCompile(`(?m)^ *while ! kubectl .*get secret ` + regexp.QuoteMeta(secret) + `; do sleep 1; done\n\z`)
				if !waits.MatchString(text[:at[0]]) {
					t.Errorf("%s reads Secret %q without the line before that waits for it", path, secret)
				}
			}
		})
	}
	const least = 3
	if found < least {
		t.Errorf("%d pages read a token's Secret, at least %d are known: this test looks for another command", found, least)
	}
}

// outputOf returns the block of the tutorial with the output of make up.
func outputOf(t *testing.T) string {
	t.Helper()
	for i, block := range strings.Split(read(t, tutorial), "```") {
		if i%2 == 1 && strings.Contains(block, "\n==> ") {
			return block
		}
	}
	t.Fatalf("%s shows no output of make up", tutorial)
	return ""
}

// titlesIn returns the launcher's step names, section titles, and the formats that it prints after
// an empty line.
func titlesIn(launcher *ast.File) []string {
	var titles []string
	ast.Inspect(launcher, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if name := fmt.Sprint(n.Lhs[0]); name == "steps" || name == "shown" {
				titles = append(titles, firstTexts(n.Rhs[0])...)
			}
		case *ast.CallExpr:
			format, ok := "", false
			if len(n.Args) > 0 {
				format, ok = constant(n.Args[0])
			}
			if ok && strings.HasPrefix(format, "\n") && !strings.HasPrefix(format, "\n%") {
				titles = append(titles, strings.TrimSpace(format))
			}
		}
		return true
	})
	return titles
}

// firstTexts returns the first field of each list element if it is a text.
func firstTexts(list ast.Expr) []string {
	var texts []string
	outer, ok := list.(*ast.CompositeLit)
	if !ok {
		return nil // It is built from another list, which is checked where it is built.
	}
	for _, element := range outer.Elts {
		if inner, ok := element.(*ast.CompositeLit); ok && len(inner.Elts) > 0 {
			if text, ok := constant(inner.Elts[0]); ok {
				texts = append(texts, text)
			}
		}
	}
	return texts
}

func matchesOne(formats []string, line string) bool {
	for _, format := range formats {
		format = strings.TrimSpace(format)
		// A format without text of its own would match every line.
		if strings.ContainsAny(verb().ReplaceAllString(format, ""), "abcdefghijklmnopqrstuvwxyz") &&
			regexp.MustCompile(`^`+pattern(format)+`$`).MatchString(line) {
			return true
		}
	}
	return false
}

// pattern returns a regular expression for the output of a format.
func pattern(format string) string {
	parts := verb().Split(format, -1)
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return strings.Join(parts, ".*")
}

func verb() *regexp.Regexp { return regexp.MustCompile(`%[.0-9]*[a-z]`) }

// TestCommandsThatInstallNameTheImages checks that commands that install the charts of a checkout name
// an image: only a release's charts know where theirs are, and a copied command must not create Pods
// that cannot pull them.
func TestCommandsThatInstallNameTheImages(t *testing.T) {
	install := regexp.MustCompile(`(?m)^ *(?:[a-z]+\$ )?helm install \S+ charts/(gateway|agent) (?:.*\\\n)*.*$`)
	if page := read(t, "docs/getting-started/install.md"); install.MatchString(page) || strings.Count(page, `"oci://$REGISTRY/charts/`) < 4 {
		t.Error("docs/getting-started/install.md does not install a release")
	}
	found := map[string]int{}
	for _, document := range documents(t) {
		for _, match := range install.FindAllStringSubmatch(read(t, document), -1) {
			found[match[1]]++
			if !strings.Contains(match[0], " image.repository=") && !strings.Contains(match[0], "--set=image.repository=") {
				t.Errorf("%s does not say which image:\n%s", document, match[0])
			}
			if match[1] == "gateway" && !strings.Contains(match[0], "agentImage.repository=") {
				t.Errorf("%s does not say which image imported clusters get:\n%s", document, match[0])
			}
		}
	}
	if found["gateway"] < 1 || found["agent"] < 2 {
		t.Errorf("only %v are found: this test looks for the wrong text", found)
	}
}
