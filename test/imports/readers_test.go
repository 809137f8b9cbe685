// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// readers are functions that make values of YAML, by the packages that have them, and of
// quantities. What only splits a text into documents is not among them.
var readers = map[string]*regexp.Regexp{
	"sigs.k8s.io/yaml":                      regexp.MustCompile(`^(Unmarshal|YAMLToJSON)`),
	"go.yaml.in/yaml":                       regexp.MustCompile(`^(Unmarshal|NewDecoder)`),
	"gopkg.in/yaml":                         regexp.MustCompile(`^(Unmarshal|NewDecoder)`),
	"k8s.io/apimachinery/pkg/util/yaml":     regexp.MustCompile(`^(Unmarshal|ToJSON|NewYAMLToJSONDecoder|NewYAMLOrJSONDecoder)`),
	"k8s.io/client-go/tools/clientcmd":      regexp.MustCompile(`^(Load|RESTConfigFromKubeConfig|NewClientConfigFromBytes|BuildConfigFromFlags)`),
	"k8s.io/apimachinery/pkg/api/resource":  regexp.MustCompile(`^ParseQuantity`),
	"helm.sh/helm/v4/pkg/chart/common":      regexp.MustCompile(`^ReadValues`),
	"helm.sh/helm/v4/pkg/chart/common/util": regexp.MustCompile(`^Read`),
}

// readOtherwise are the files that read YAML themselves.
var readOtherwise = map[string]string{
	"pkg/kube/untrusted/yaml.go":                  "it is the reader",
	"pkg/kube/untrusted/quantity.go":              "it is the reader",
	"pkg/apis/crds/embed.go":                      "it reads what is compiled in",
	"pkg/webhook/capz/capz.go":                    "it reads what is compiled in",
	"pkg/webhook/policies/render.go":              "it reads what is compiled in",
	"pkg/kube/kubeconfig/parse.go":                "what it loads is the reader's JSON",
	"pkg/placement/helmchart/engine/render.go":    "it runs in a process of its own, with limits of time and memory",
	"pkg/placement/helmchart/engine/documents.go": "it runs in a process of its own, with limits of time and memory, and charts may have keys twice",
	"cmd/gateway/app/options/hub.go":              "it reads the kubeconfig that the user who starts the gateway names",
	"cmd/agent/app/options/config.go":             "it reads the kubeconfig that the user who starts the agent names",
	"pkg/apiserver/memberconfig/memberconfig.go":  "it reads the kubeconfig of the user who runs the command, on their own machine",
}

// TestTextOfOthersIsReadWithinBounds keeps YAML, and quantities, from being read past pkg/kube/untrusted.
func TestTextOfOthersIsReadWithinBounds(t *testing.T) {
	holdReaders(t, readers, readOtherwise)
}

// holdReaders fails for each file of the product that uses one of the functions and is not in
// the table, by its name or in a folder, and for each in the table that uses none.
func holdReaders(t *testing.T, of map[string]*regexp.Regexp, otherwise map[string]string) {
	t.Helper()
	seen := map[string]bool{}
	for _, folder := range []string{"pkg", "cmd"} {
		root := filepath.Join("..", "..")
		err := filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, name)
			if err != nil {
				return err
			}
			for _, call := range readings(file, of) {
				known := relative
				for key := range otherwise {
					if strings.HasSuffix(key, "/") && strings.HasPrefix(relative, key) {
						known = key
					}
				}
				seen[known] = true
				if otherwise[known] == "" {
					t.Errorf("%s uses %s: text of others is read by pkg/kube/untrusted, or there is a reason for the table of this test", relative, call)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, reason := range otherwise {
		if !seen[name] {
			t.Errorf("%s reads nothing of the kind: take it off the table (%s)", name, reason)
		}
	}
}

// readings are the functions of readers that a file names.
func readings(file *ast.File, of map[string]*regexp.Regexp) []string {
	reads := map[string]*regexp.Regexp{}
	for _, imported := range file.Imports {
		from, err := strconv.Unquote(imported.Path.Value)
		if err != nil {
			continue
		}
		for parent, names := range of {
			if !below(from, parent) {
				continue
			}
			name := path.Base(from)
			if regexp.MustCompile(`^v[0-9]+$`).MatchString(name) {
				name = path.Base(path.Dir(from))
			}
			if imported.Name != nil {
				name = imported.Name.Name
			}
			reads[name] = names
		}
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if from, ok := selector.X.(*ast.Ident); ok && reads[from.Name] != nil && reads[from.Name].MatchString(selector.Sel.Name) {
			found = append(found, from.Name+"."+selector.Sel.Name)
		}
		return true
	})
	return found
}
