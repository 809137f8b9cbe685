// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/parser"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

func parameters() Parameters {
	return Parameters{
		TokenLifetime: 90 * time.Minute, GatewayUser: "system:serviceaccount:fleet-system:gate\"way'", GatewayNamespace: "fleet-system",
		ArgoCD: types.NamespacedName{Namespace: "argocd", Name: "fleetgate-argocd"}, ConfirmDeleteMembers: 7,
	}
}

func setsOf(p Parameters) map[string][]client.Object {
	return map[string][]client.Object{
		"members":              Members(p),
		"deliveries":           Deliveries(p),
		"service-accounts":     ServiceAccounts(),
		"registration":         Registration(),
		"gateway":              Gateway(p),
		"guardrails-selected":  GuardRailsSelected.Of(p),
		"guardrails-reference": GuardRailsReference.Of(p),
		"confirm-delete-warn":  ConfirmDeleteWarn.Of(p),
		"confirm-delete-deny":  ConfirmDeleteDeny.Of(p),
		"confirm-delete-ocm":   ConfirmDeleteDeny.OfDecisions(p),
		"confirm-delete-mc":    ConfirmDeleteDeny.OfClusters(),
		"helm-charts":          HelmCharts(),
		"authors":              Authors(),
		"klusterlets":          Klusterlets(),
		"member-bounds":        MemberBounds(),
		"manifestworks":        ManifestWorks(),
		"identities":           Identities(p),
		"orphans":              Orphans(),
		"definitions":          Definitions(GuardRailsReference),
	}
}

// TestInstalledIsWhatItWas compares with what v0.1.0 put on hubs, which put its policies
// together in Go, and with what was added since to policies of then. Expressions are compared as the parser of CEL understands them, with
// what variables stand for in their place: line breaks and names of variables are nobody's
// concern, anything else is.
func TestInstalledIsWhatItWas(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("nothing to compare with: %v", err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".yaml")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, document := range strings.Split(strings.TrimPrefix(string(text), "---\n"), "\n---\n") {
				want = append(want, canonical(t, []byte(document)))
			}
			var got []string
			for _, object := range setsOf(parameters())[name] {
				document, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, canonical(t, document))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("other objects than before (-before +now):\n%s", diff)
			}
		})
	}
}

// canonical is the object with its expressions in one form.
func canonical(t *testing.T, document []byte) string {
	t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{}
	if err := yaml.Unmarshal(document, policy); err != nil {
		t.Fatal(err)
	}
	if policy.Kind != "ValidatingAdmissionPolicy" {
		return strings.TrimSpace(string(document))
	}
	variables := map[string]string{}
	for _, variable := range policy.Spec.Variables {
		variables[variable.Name] = inlined(t, variable.Expression, variables)
	}
	// They are in the place of their names now.
	policy.Spec.Variables = nil
	each := func(expression *string) {
		if *expression != "" {
			*expression = inlined(t, *expression, variables)
		}
	}
	for i := range policy.Spec.MatchConditions {
		each(&policy.Spec.MatchConditions[i].Expression)
	}
	for i := range policy.Spec.Validations {
		each(&policy.Spec.Validations[i].Expression)
		each(&policy.Spec.Validations[i].MessageExpression)
	}
	for i := range policy.Spec.AuditAnnotations {
		each(&policy.Spec.AuditAnnotations[i].ValueExpression)
	}
	text, err := yaml.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var variable = regexp.MustCompile(`variables\.(\w+)`)

func inlined(t *testing.T, expression string, variables map[string]string) string {
	t.Helper()
	return reprinted(t, variable.ReplaceAllStringFunc(reprinted(t, expression), func(name string) string {
		value, ok := variables[strings.TrimPrefix(name, "variables.")]
		if !ok {
			t.Errorf("%s is used before it is there", name)
		}
		return "(" + value + ")"
	}))
}

// reprinted is the expression as the parser prints it. Macros are left as they are.
func reprinted(t *testing.T, expression string) string {
	t.Helper()
	reader, err := parser.NewParser(parser.EnableOptionalSyntax(true), parser.MaxRecursionDepth(1000))
	if err != nil {
		t.Fatal(err)
	}
	parsed, problems := reader.Parse(common.NewTextSource(expression))
	if len(problems.GetErrors()) > 0 {
		t.Fatalf("%s\n%s", expression, problems.ToDisplayString())
	}
	printed, err := parser.Unparse(parsed.Expr(), parsed.SourceInfo(), parser.WrapOnColumn(100), parser.WrapOnOperators("_&&_", "_||_"))
	if err != nil {
		t.Fatal(err)
	}
	return printed
}

// TestEveryFileIsInASet: a file that no set names guards nothing.
func TestEveryFileIsInASet(t *testing.T) {
	paths, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found, rendered := sets.New[string](), sets.New[string]()
	for _, path := range paths {
		found.Insert("fleetgate-" + strings.TrimSuffix(path, ".yaml"))
	}
	for _, objects := range setsOf(parameters()) {
		for _, object := range objects {
			rendered.Insert(object.GetName())
		}
	}
	if diff := cmp.Diff(sets.List(found), sets.List(rendered)); diff != "" {
		t.Errorf("files and what is rendered (-files +rendered):\n%s", diff)
	}
}

// TestEveryFileSaysWhy: the reason stands above the policy.
func TestEveryFileSaysWhy(t *testing.T) {
	paths, err := filepath.Glob("*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no policies: %v", err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\n\n")
		if !strings.HasPrefix(rest, "# ") {
			t.Errorf("%s does not begin with the reason for it", path)
		}
	}
}

// TestParametersAreLiterals: a name that would end a literal is still a name.
func TestParametersAreLiterals(t *testing.T) {
	for _, name := range []string{`a"b`, `a'b`, `a\`, "a\nb", `"] || true || "" in ["`, "$(gatewayNamespace)", "\x00é"} {
		p := parameters()
		p.GatewayUser = name
		policy := Gateway(p)[0].(*admissionregistrationv1.ValidatingAdmissionPolicy)
		reader, err := parser.NewParser()
		if err != nil {
			t.Fatal(err)
		}
		parsed, problems := reader.Parse(common.NewTextSource(policy.Spec.MatchConditions[0].Expression))
		if len(problems.GetErrors()) > 0 {
			t.Fatal(problems.ToDisplayString())
		}
		list := parsed.Expr().AsCall().Args()[1].AsList()
		if list.Size() != 1 || list.Elements()[0].AsLiteral().Value() != name {
			t.Errorf("%q became %s", name, policy.Spec.MatchConditions[0].Expression)
		}
	}
}

func TestUnknownParametersAreErrors(t *testing.T) {
	spec := admissionregistrationv1.ValidatingAdmissionPolicySpec{Validations: []admissionregistrationv1.Validation{{Expression: "$(nothing) == 1"}}}
	if err := parameters().fillIn(&spec); err == nil || !strings.Contains(err.Error(), "nothing") {
		t.Errorf("got %v, want an error that names it", err)
	}
}
