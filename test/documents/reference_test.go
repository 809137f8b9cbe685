// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package documents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"fleetgate.io/fleetgate/pkg/apis/crds"
)

// referenceFolder has one page for each API group with stored kinds.
const referenceFolder = docsFolder + "/reference"

// threatsPage has the table of threats.
const threatsPage = referenceFolder + "/threats.md"

// TestTheReferenceIsThatOfTheTypes compares the pages that are generated from type comments.
func TestTheReferenceIsThatOfTheTypes(t *testing.T) {
	all, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	groups := map[string][]*apiextensionsv1.CustomResourceDefinition{}
	for _, crd := range all {
		groups[crd.Spec.Group] = append(groups[crd.Spec.Group], crd)
	}
	pages := map[string]string{
		referenceFolder + "/README.md":               referenceIndex(groups),
		referenceFolder + "/" + configPage + ".md":   configurationPage(t),
		referenceFolder + "/" + commandsPage + ".md": pluginPage(),
	}
	for group, kinds := range groups {
		pages[referenceFolder+"/"+group+".md"] = referencePage(group, kinds)
	}
	for name, want := range pages {
		if *update {
			if err := os.MkdirAll(filepath.Join(root, referenceFolder), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, name, want)
			continue
		}
		if diff := cmp.Diff(want, read(t, name)); diff != "" {
			t.Errorf("%s: run go test ./test/documents -update (-want +got):\n%s", name, diff)
		}
	}
	// Only the pages of groups have a dot in their names.
	there, err := filepath.Glob(filepath.Join(root, referenceFolder, "*.*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range there {
		if name := referenceFolder + "/" + filepath.Base(path); pages[name] == "" {
			t.Errorf("%s is the page of a group that does not exist", name)
		}
	}
}

func referenceIndex(groups map[string][]*apiextensionsv1.CustomResourceDefinition) string {
	var b strings.Builder
	b.WriteString("# Reference of the API\n\nEvery kind that is stored, made from the types; each links to its fields. The first version is stored. All versions of a kind have the same fields. [api.md](api.md) has API families, kinds that are not stored, labels and annotations. [All pages](../README.md#reference) lists the other pages of this folder.\n\n")
	b.WriteString("The configuration files of gateway and agent are in [" + configPage + "](" + configPage + ".md), the commands of the kubectl plugin in [" + commandsPage + "](" + commandsPage + ".md). [threats.md](threats.md) lists threats, their mitigations and tests.\n\n")
	b.WriteString("| kind | group | versions | meaning |\n|---|---|---|---|\n")
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		for _, crd := range groups[group] {
			meaning, _, _ := strings.Cut(oneLine(newest(crd).Schema.OpenAPIV3Schema.Description), ". ")
			fmt.Fprintf(&b, "| [%s](%s.md#%s) | `%s` | %s | %s. |\n", crd.Spec.Names.Kind, group, strings.ToLower(crd.Spec.Names.Kind),
				group, versionsOf(crd), strings.TrimSuffix(meaning, "."))
		}
	}
	return b.String()
}

func referencePage(group string, kinds []*apiextensionsv1.CustomResourceDefinition) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nMade from the types: go test ./test/documents -update.\n", group)
	for _, crd := range kinds {
		version := newest(crd)
		var served []string
		for _, v := range crd.Spec.Versions {
			if v.Served {
				served = append(served, "`"+v.Name+"`")
			}
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s; %s.\n\n| field of `%s` | type | meaning |\n|---|---|---|\n",
			crd.Spec.Names.Kind, oneLine(version.Schema.OpenAPIV3Schema.Description), scopeOf(crd), strings.Join(served, ", "), version.Name)
		for _, part := range []string{"spec", "status"} {
			if schema, ok := version.Schema.OpenAPIV3Schema.Properties[part]; ok {
				writeFields(&b, part, &schema, false)
			}
		}
	}
	return b.String()
}

func scopeOf(crd *apiextensionsv1.CustomResourceDefinition) string {
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		return "In a namespace"
	}
	return "In no namespace"
}

// newest returns the stored version, which has every field.
func newest(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return &crd.Spec.Versions[i]
		}
	}
	return &crd.Spec.Versions[0]
}

// writeFields writes a row for a field and for each field below it. Kubernetes' own types are only
// named.
func writeFields(b *strings.Builder, path string, schema *apiextensionsv1.JSONSchemaProps, required bool) {
	shape := schema
	for shape.Items != nil && shape.Items.Schema != nil {
		shape, path = shape.Items.Schema, path+"[]"
	}
	if shape.AdditionalProperties != nil && shape.AdditionalProperties.Schema != nil && len(shape.Properties) == 0 {
		shape, path = shape.AdditionalProperties.Schema, path+"{}"
	}
	known := ofKubernetes(path, shape)
	meaning := oneLine(schema.Description)
	if required {
		meaning = "**Required.** " + meaning
	}
	if len(shape.Enum) > 0 {
		meaning += " One of " + values(shape.Enum) + "."
	}
	if schema.Default != nil {
		meaning += " Default: " + values([]apiextensionsv1.JSON{*schema.Default}) + "."
	}
	kind := known
	if kind == "" {
		kind = typeOf(shape)
	}
	fmt.Fprintf(b, "| `%s` | %s | %s |\n", path, kind, strings.TrimSpace(meaning))
	if known != "" {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(shape.Properties)) {
		below := shape.Properties[name]
		writeFields(b, path+"."+name, &below, slices.Contains(shape.Required, name))
	}
}

func typeOf(schema *apiextensionsv1.JSONSchemaProps) string {
	switch {
	case schema.XIntOrString:
		return "integer or text"
	case schema.XEmbeddedResource, schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields:
		return "any object"
	case schema.Format == "date-time":
		return "time"
	case schema.Type == "string":
		return "text"
	}
	return schema.Type
}

// ofKubernetes returns the name of a Kubernetes type by its shape, or an empty string.
func ofKubernetes(path string, schema *apiextensionsv1.JSONSchemaProps) string {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { _, ok := schema.Properties[name]; return !ok })
	}
	switch {
	case has("lastTransitionTime", "reason", "status", "type"):
		return "Condition"
	case has("matchExpressions", "matchLabels"):
		return "LabelSelector"
	case has("nodeAffinity", "podAffinity"):
		return "Affinity"
	case has("claims", "limits", "requests"):
		return "ResourceRequirements"
	case has("name", "value", "valueFrom"):
		return "EnvVar"
	case has("apiGroups", "apiVersions", "operations", "resources"):
		return "RuleWithOperations"
	case has("certificate-authority-data", "server"):
		return "Cluster of a kubeconfig"
	case has("tolerationSeconds", "operator", "effect") && strings.HasSuffix(path, "agentTolerations[]"):
		return "Toleration"
	}
	return ""
}

func values(all []apiextensionsv1.JSON) string {
	var texts []string
	for _, one := range all {
		var compact bytes.Buffer
		if err := json.Compact(&compact, one.Raw); err == nil {
			texts = append(texts, "`"+strings.Trim(compact.String(), `"`)+"`")
		}
	}
	return strings.Join(texts, ", ")
}

// oneLine formats a comment for a table cell.
func oneLine(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
