// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// Modules that are built with the product, by `make up` and before every suite. A package that two
// of them need in the same version is compiled once: with different versions a cold build took four
// minutes longer on two cores.
var builtTogether = []string{"pkg/apis", "hack/kube", "hack/helm", "hack/kwok"}

// Other modules can have versions of Kubernetes of their own.
var ownKubernetes = map[string]string{
	"hack/alerts":       "no package of Kubernetes is compiled: Prometheus' module requires them",
	"hack/argocd":       "Argo CD replaces them by the version that it was released with",
	"hack/certmanager":  "the controllers run as cert-manager released them",
	"hack/clusterapi":   "the controllers run as Cluster API released them",
	"hack/golangci":     "golangci-lint compiles with the versions of its own release",
	"hack/k9s":          "k9s runs as it was released",
	"hack/konnectivity": "upstream's server and agent run as they were released",
	"hack/kubectl":      "it pins the oldest kubectl that is supported",
}

// versions returns the version of each module that a go.mod requires, after its replacements.
func versions(t *testing.T, folder string) map[string]string {
	t.Helper()
	path := filepath.Join("..", "..", folder, "go.mod")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(path, raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, require := range file.Require {
		versions[require.Mod.Path] = require.Mod.Version
	}
	for _, replace := range file.Replace {
		if _, required := versions[replace.Old.Path]; required && replace.New.Version != "" {
			versions[replace.Old.Path] = replace.New.Version
		}
	}
	return versions
}

func TestModules_BuiltTogetherHaveTheSameVersions(t *testing.T) {
	first := map[string]string{}
	found := versions(t, ".")
	for path := range found {
		first[path] = "go.mod"
	}
	for _, folder := range builtTogether {
		for path, version := range versions(t, folder) {
			if _, known := found[path]; !known {
				found[path], first[path] = version, folder+"/go.mod"
			} else if found[path] != version {
				t.Errorf("%s is %s in %s and %s in %s/go.mod", path, found[path], first[path], version, folder)
			}
		}
	}
}

func TestModules_HaveOneVersionOfKubernetesOrAReason(t *testing.T) {
	folders, err := filepath.Glob(filepath.Join("..", "..", "hack", "*", "go.mod"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("%d modules below hack: %v", len(folders), err)
	}
	found := versions(t, ".")
	for _, path := range folders {
		folder := "hack/" + filepath.Base(filepath.Dir(path))
		_, excluded := ownKubernetes[folder]
		different := false
		for path, version := range versions(t, folder) {
			if !strings.HasPrefix(path, "k8s.io/") {
				continue
			}
			if first, known := found[path]; known && first != version {
				different = true
			} else if !excluded {
				found[path] = version
			}
		}
		if different != excluded {
			t.Errorf("%s: other versions of modules of k8s.io than elsewhere: %t; has a reason for it: %t", folder, different, excluded)
		}
	}
}

// mostPackages bounds what a cold `make up` compiles, which is most of its time. The bound is a twentieth
// above the number when it was set.
const mostPackages = 3500

// What make up builds, by the folder of the module, as the Makefile does.
var builtByUp = map[string][]string{
	".":         {"./cmd/gateway", "./cmd/agent", "./cmd/kubectl-fleetgate", "./hack/fleet"},
	"hack/kube": {"."},
	"hack/kwok": {"sigs.k8s.io/kwok/cmd/kwok"},
	"hack/helm": {"helm.sh/helm/v4/cmd/helm"},
}

func TestMakeUp_CompilesFewPackages(t *testing.T) {
	packages := map[string]bool{}
	for folder, targets := range builtByUp {
		command := exec.CommandContext(t.Context(), "go", append([]string{"list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Version}}{{end}}"}, targets...)...)
		command.Dir = filepath.Join("..", "..", folder)
		out, err := command.Output()
		if err != nil {
			t.Fatalf("listing what %s compiles: %v", folder, err)
		}
		// A package that two modules have in one version counts once.
		for line := range strings.Lines(string(out)) {
			packages[line] = true
		}
	}
	if len(packages) == 0 || len(packages) > mostPackages {
		t.Errorf("make up compiles %d packages, the limit is %d: find with go mod why what needs the new ones", len(packages), mostPackages)
	}
}
