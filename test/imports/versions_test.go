// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"os"
	"path/filepath"
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
	product := versions(t, ".")["k8s.io/client-go"]
	folders, err := filepath.Glob(filepath.Join("..", "..", "hack", "*", "go.mod"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("%d modules below hack: %v", len(folders), err)
	}
	for _, path := range folders {
		folder := "hack/" + filepath.Base(filepath.Dir(path))
		_, excluded := ownKubernetes[folder]
		version, required := versions(t, folder)["k8s.io/client-go"]
		different := required && version != product
		if different != excluded {
			t.Errorf("%s: other version of k8s.io/client-go than go.mod: %t; has a reason for it: %t", folder, different, excluded)
		}
	}
}
