// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// required returns the versions in a go.mod of hack.
func required(t *testing.T, path string) map[string]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", path))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := modfile.Parse(path, raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, require := range parsed.Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	return versions
}

func TestSums_AreOfTheVersionsThatHackBuilds(t *testing.T) {
	files, err := parse(sums)
	if err != nil {
		t.Fatal(err)
	}
	kube := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "etcd"}
	for set, c := range map[string]struct {
		module   string
		programs []string
		path     string
	}{
		"kube":       {"kube/go.mod", kube, "k8s.io/kubernetes"},
		"kube-older": {"kube/older.mod", kube, "k8s.io/kubernetes"},
		"helm":       {"helm/go.mod", []string{"helm"}, "helm.sh/helm/v4"},
		"kwok":       {"kwok/go.mod", []string{"kwok"}, "sigs.k8s.io/kwok"},
	} {
		versions := required(t, c.module)
		for _, platform := range []string{"linux/amd64", "linux/arm64"} {
			var programs []string
			for _, f := range choose(files, set, platform) {
				programs = append(programs, f.program)
				want := versions[c.path]
				if f.program == "etcd" {
					want = versions["go.etcd.io/etcd/server/v3"]
				}
				if f.version != want {
					t.Errorf("%s of %s is %s in sums.txt, but hack/%s builds %s: pin the published sums, or remove the rows so that make builds it", f.program, set, f.version, c.module, want)
				}
				if !strings.HasPrefix(f.url, "https://") || !strings.Contains(f.url, strings.TrimPrefix(platform, "linux/")) {
					t.Errorf("%s of %s: URL %s", f.program, platform, f.url)
				}
			}
			if len(programs) > 0 && !slices.Equal(programs, c.programs) {
				t.Errorf("%s for %s has %q, want %q", set, platform, programs, c.programs)
			}
		}
	}
}

// fakeGo writes what it is asked for into a file, and builds and downloads empty programs.
const fakeGo = `#!/bin/sh
echo "$*" >> "$LOG"
case "$1" in
run) [ -n "$REACHABLE" ] || { echo "    Not downloaded: no network"; exit 1; }
	for name in etcd kube-apiserver kube-controller-manager kube-scheduler kubectl; do
		mkdir -p "$4" "$6" && touch "$4/$name-v1" && ln -sf "../prebuilt/$name-v1" "$6/$name"
	done ;;
build) while [ "$1" != -o ]; do shift; done; mkdir -p "$(dirname "$2")"; echo built > "$2" ;;
esac
`

// makeKube runs the Makefile's rule for Kubernetes in a folder, and returns what it ran.
func makeKube(t *testing.T, folder string, variables ...string) string {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(root, folder)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(folder, "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "make", append([]string{"-C", root, "DIR=" + relative, "GO=" + filepath.Join(folder, "go"), relative + "/bin/kube"}, variables...)...)
	command.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "OFFLINE=") || strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=")
	}), "LOG="+log, "FLEETGATE_DIR="+folder)
	command.Env = append(command.Env, variables...)
	// Not a pipe: what shows progress would keep it open.
	out, err := os.Create(filepath.Join(folder, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	command.Stdout, command.Stderr = out, out
	if err := command.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		t.Fatalf("make: %v\n%s", err, said)
	}
	ran, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "bin", "kubectl")); err != nil {
		t.Errorf("there is no kubectl afterwards: %v", err)
	}
	return string(ran)
}

func TestMakefile_BuildsWhatCannotBeDownloaded(t *testing.T) {
	if testing.Short() {
		t.Skip("runs make")
	}
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte(fakeGo), 0o700); err != nil { //nolint:gosec // It is a program.
		t.Fatal(err)
	}
	const downloads, builds = "run ./hack/prebuilt", "build -C hack/kube"
	steps := []struct {
		name            string
		variables       []string
		remove          bool
		download, build bool
	}{
		{name: "without a network", download: true, build: true},
		{name: "again", download: false, build: false},
		{name: "with a network", variables: []string{"REACHABLE=1"}, remove: true, download: true},
		{name: "again, downloaded", variables: []string{"REACHABLE=1"}},
		{name: "OFFLINE=1 after a download", variables: []string{"REACHABLE=1", "OFFLINE=1"}, build: true},
		{name: "OFFLINE=1 after a build", variables: []string{"REACHABLE=1", "OFFLINE=1"}},
	}
	for _, step := range steps {
		if step.remove {
			if err := os.Remove(filepath.Join(folder, "bin", "kube")); err != nil {
				t.Fatal(err)
			}
		}
		ran := makeKube(t, folder, step.variables...)
		if strings.Contains(ran, downloads) != step.download || strings.Contains(ran, builds) != step.build {
			t.Errorf("%s: want a download %t and a build %t, ran:\n%s", step.name, step.download, step.build, ran)
		}
	}
}
