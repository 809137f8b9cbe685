// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// mostFolders keeps the list of folders in pkg short enough to read at a glance.
	mostFolders = 17
	// fewestLines of Go, without tests, justify a folder of its own in pkg.
	fewestLines = 150
)

// wiring is what connects both API families, by package.
var wiring = map[string]string{
	"pkg/placement":        "it adds the controllers of both families to a manager",
	"pkg/inspect/simulate": "it decides placements of both families from files",
}

// ofOCM are folders of pkg that serve Open Cluster Management's API only, without a path ocm/.
var ofOCM = []string{"pkg/addon"}

// isOfOCM reports whether a package serves Open Cluster Management's API only. Its name is without
// that of the module.
func isOfOCM(name string) bool {
	return strings.Contains(name+"/", "/ocm/") || slices.ContainsFunc(ofOCM, func(folder string) bool { return below(name, folder) })
}

func TestFolders_AreFewAndLarge(t *testing.T) {
	root := filepath.Join("..", "..", "pkg")
	lines := map[string]int{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		lines[strings.Split(relative, string(filepath.Separator))[0]] += bytes.Count(content, []byte("\n"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) == 0 || len(lines) > mostFolders {
		t.Errorf("pkg has %d folders, the limit is %d", len(lines), mostFolders)
	}
	for folder, n := range lines {
		if n < fewestLines {
			t.Errorf("pkg/%s has %d lines, the minimum is %d: it belongs into another folder", folder, n, fewestLines)
		}
	}
}

func TestFolders_ImportInOneDirection(t *testing.T) {
	arrows := map[string]map[string]string{}
	for _, p := range listPackages(t) {
		from := folderOf(p.ImportPath)
		for _, imported := range p.Imports {
			to := folderOf(imported)
			if from == "" || to == "" || from == to {
				continue
			}
			if arrows[from] == nil {
				arrows[from] = map[string]string{}
			}
			arrows[from][to] = p.ImportPath + " -> " + imported
		}
	}
	if len(arrows) == 0 {
		t.Fatal("no folder of pkg imports another: the test sees nothing")
	}
	for from := range arrows {
		if path := pathTo(arrows, from, from, map[string]bool{}); path != nil {
			slices.Reverse(path)
			t.Errorf("folders of pkg import each other: %s", strings.Join(path, ", "))
		}
	}
}

// folderOf is the folder of pkg that a package is in, or empty.
func folderOf(path string) string {
	below, ok := strings.CutPrefix(path, module+"pkg/")
	if !ok {
		return ""
	}
	return strings.Split(below, "/")[0]
}

// pathTo is a way back to a folder, as imports from the last to the first, or nil.
func pathTo(arrows map[string]map[string]string, from, target string, seen map[string]bool) []string {
	for _, to := range slices.Sorted(maps.Keys(arrows[from])) {
		if to == target {
			return []string{arrows[from][to]}
		}
		if seen[to] {
			continue
		}
		seen[to] = true
		if path := pathTo(arrows, to, target, seen); path != nil {
			return append(path, arrows[from][to])
		}
	}
	return nil
}

func TestSides_HubAndAgentAreApart(t *testing.T) {
	seen := 0
	for _, p := range listPackages(t) {
		for _, imported := range p.Imports {
			if !below(p.ImportPath, module+"pkg") || !below(imported, module+"pkg") {
				continue
			}
			seen++
			for side, other := range map[string]string{"/hub/": "/agent/", "/agent/": "/hub/"} {
				if strings.Contains(p.ImportPath+"/", side) && strings.Contains(imported+"/", other) {
					t.Errorf("%s must not import %s: hub and member meet in API objects only", p.ImportPath, imported)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no package of pkg imports another: the test sees nothing")
	}
}

func TestFamilies_OnlyWiringImportsOCM(t *testing.T) {
	used := map[string]bool{}
	for _, p := range listPackages(t) {
		from, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok || isOfOCM(from) || !strings.HasPrefix(from, "pkg/") {
			continue
		}
		for _, imported := range p.Imports {
			if name, ours := strings.CutPrefix(imported, module); !ours || !isOfOCM(name) || below(imported, module+"pkg/apis") {
				continue
			}
			used[from] = true
			if wiring[from] == "" {
				t.Errorf("%s must not import %s: only wiring connects both API families", from, imported)
			}
		}
	}
	for from := range wiring {
		if !used[from] {
			t.Errorf("%s imports nothing of ocm: remove it from the list", from)
		}
	}
}
