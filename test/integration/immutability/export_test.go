// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package immutability_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/pkg/webhook/capz"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/test/support/expect"
)

// everyMode is enforced on objects by their label: by the gateway for value gateway, by the API
// server for native.
const everyMode = `
apiVersion: admission.fleetgate.io/v1alpha1
kind: ImmutabilityPolicy
metadata: {name: every-mode-%[1]s}
spec:
  match:
    resourceRules: [{apiGroups: [example.org], apiVersions: ["*"], resources: [widgets], operations: [CREATE, UPDATE]}]
    objectSelector: {matchLabels: {by: %[1]s}}
  compare: {defaultOld: [{path: spec.a, expression: "'default'"}]}
  fields:
  - {path: spec.a, mode: Immutable}
  - {path: spec.b, mode: OnceSet}
  - {path: spec.c, mode: CannotUnset}
  - {path: spec.d, mode: NoFalse}
  - {path: spec.e, mode: NoDowngrade}
  - {path: "spec.f[name]", mode: KeepItems}
  - {path: spec.g, mode: SetEqual}
  - {path: "spec.f[name].v", mode: OnceSet, message: "item %%"}
  - {path: spec.k, mode: Immutable, exceptPaths: [x, y.z, "l[name].m"]}
  - {path: spec.w, mode: Immutable, when: "oldObject.spec.?d.orValue(null) == true"}
  validations:
  - {path: spec.n, expression: "!has(object.spec.n) || object.spec.n < 3", message: n is large, messageExpression: "'n is ' + string(object.spec.n)"}
`

var _ = Describe("An exported policy", Serial, func() {
	It("decides the same as the policy for random objects", func(ctx SpecContext) {
		gateway := given(ctx, fmt.Sprintf(everyMode, "gateway"))
		nativePolicy := policyFrom(fmt.Sprintf(everyMode, "native"))
		exported, binding, err := immutability.Export(nativePolicy)
		Expect(err).NotTo(HaveOccurred())
		for _, object := range []client.Object{exported, binding} {
			expect.Created(ctx, masters, object)
			DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, object)).To(Succeed()) })
		}
		Eventually(func(g Gomega) {
			g.Expect(masters.Get(ctx, client.ObjectKeyFromObject(exported), exported)).To(Succeed())
			g.Expect(exported.Status.TypeChecking).NotTo(BeNil())
			g.Expect(exported.Status.TypeChecking.ExpressionWarnings).To(BeEmpty())
		}).Should(Succeed())
		for _, by := range []string{"gateway", "native"} {
			Eventually(func() error {
				return masters.Create(ctx, labelled(by, map[string]any{"n": int64(7)}), client.DryRunAll)
			}).
				Should(MatchError(ContainSubstring("n is 7")), by)
		}

		random, refused := rand.New(rand.NewPCG(1, 2)), 0
		for range 150 {
			old := randomSpec(random)
			newer := randomChange(random, old)
			answers := map[string][]string{}
			for _, by := range []string{"gateway", "native"} {
				// Objects are created without the label, so that any object can be the old one.
				object := labelled("nobody", old)
				expect.Created(ctx, masters, object)
				object.SetLabels(map[string]string{"by": by})
				object.Object["spec"] = newer
				answers[by] = pathsIn(masters.Update(ctx, object, client.DryRunAll))
			}
			// The API server reports only the first violation.
			if len(answers["gateway"]) == 0 {
				Expect(answers["native"]).To(BeEmpty(), "old %v, new %v", old, newer)
				continue
			}
			refused++
			Expect(answers["native"]).To(HaveLen(1), "old %v, new %v, gateway %v", old, newer, answers["gateway"])
			Expect(answers["gateway"]).To(ContainElement(answers["native"][0]), "old %v, new %v", old, newer)
		}
		Expect(refused).To(And(BeNumerically(">", 40), BeNumerically("<", 145)), "of 150 changes: of gateway %s", gateway.Name)
	})

	It("is accepted by the API server without a warning, for each policy of the pack without lookups", func(ctx SpecContext) {
		policies, err := capz.Policies()
		Expect(err).NotTo(HaveOccurred())
		count := 0
		for _, policy := range policies {
			exported, binding, err := immutability.Export(policy)
			if err != nil {
				Expect(err).To(MatchError(immutability.ErrNotExportable))
				continue
			}
			count++
			Expect(masters.Create(ctx, exported, client.DryRunAll)).To(Succeed(), policy.Name)
			Expect(masters.Create(ctx, binding, client.DryRunAll)).To(Succeed(), policy.Name)
		}
		Expect(count).To(BeNumerically(">", 10))
	})

	It("of the pack refers only to fields of the schema", func(ctx SpecContext) {
		var policies admissionv1alpha1.ImmutabilityPolicyList
		Eventually(func(g Gomega) {
			g.Expect(masters.List(ctx, &policies)).To(Succeed())
			for _, policy := range policies.Items {
				if strings.HasPrefix(policy.Name, "capz-") {
					g.Expect(policy.Status.MatchedResources).To(BeNumerically(">", 0), policy.Name)
					g.Expect(policy.Status.ExpressionWarnings).To(BeEmpty(), policy.Name)
				}
			}
		}).Should(Succeed())
	})

	It("denies the requests that the policy denies", func(ctx SpecContext) {
		policies, err := capz.Policies()
		Expect(err).NotTo(HaveOccurred())
		policy := policies[slices.IndexFunc(policies, func(p *admissionv1alpha1.ImmutabilityPolicy) bool { return p.Name == "capz-azurecluster" })]
		exported, binding, err := immutability.Export(policy)
		Expect(err).NotTo(HaveOccurred())
		attempt := func(ctx context.Context) error {
			return masters.Create(ctx, azureCluster("default", "probe-"+long), client.DryRunAll)
		}
		DeferCleanup(func(ctx SpecContext) {
			Eventually(attempt).WithContext(ctx).Should(Or(Succeed(), Not(MatchError(ContainSubstring("ValidatingAdmissionPolicy")))), "the API server stops enforcing it with a delay")
		})
		for _, object := range []client.Object{exported, binding} {
			expect.Created(ctx, masters, object)
			DeferCleanup(func(ctx SpecContext) { Expect(masters.Delete(ctx, object)).To(Succeed()) })
		}
		front.down.Store(true)
		DeferCleanup(func() { front.down.Store(false) })
		Eventually(attempt).WithContext(ctx).
			Should(MatchError(And(ContainSubstring("ValidatingAdmissionPolicy 'fleetgate-capz-azurecluster'"), ContainSubstring("44 characters"))))
		Expect(masters.Create(ctx, azureCluster("default", "probe"), client.DryRunAll)).To(Succeed())
	})
})

func labelled(by string, spec map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	object := widget("default", "{}")
	object.SetLabels(map[string]string{"by": by})
	object.Object["spec"] = spec
	return object
}

// pathsIn returns the field paths in a rejection.
func pathsIn(err error) []string {
	GinkgoHelper()
	if err == nil {
		return nil
	}
	Expect(err).To(Satisfy(apierrors.IsInvalid))
	var paths []string
	for _, path := range []string{"spec.a", "spec.b", "spec.c", "spec.d", "spec.e", "spec.f[name].v", "spec.f[name]", "spec.g", "spec.k", "spec.w", "spec.n"} {
		if strings.Contains(err.Error(), path+": ") {
			paths = append(paths, path)
		}
	}
	return paths
}

// values are candidate field values of every type, empty and not.
func values() map[string][]any {
	items := []any{
		[]any{map[string]any{"name": "x", "v": int64(1)}}, []any{map[string]any{"name": "x"}, map[string]any{"name": "y", "v": ""}}, []any{}, "text", []any{"x", nil},
	}
	mixed := []any{"", "x", "default", int64(0), int64(1), true, false, []any{}, []any{"x"}, map[string]any{}, map[string]any{"x": int64(1)}}
	return map[string][]any{
		"a": mixed, "b": mixed, "c": mixed, "d": {true, false, "true"}, "e": {"v1.2.3", "1.10.0", "v1.9.0-rc.1", "latest", "", int64(1)}, "f": items,
		"g": {[]any{int64(1), int64(2)}, []any{int64(2), int64(1)}, []any{int64(1), int64(1)}, []any{}, "x"},
		"k": {map[string]any{"x": int64(1)}, map[string]any{"y": map[string]any{"z": int64(1)}}, map[string]any{"y": map[string]any{"z": int64(2), "q": int64(1)}},
			map[string]any{"l": []any{map[string]any{"name": "i", "m": int64(1)}}}, map[string]any{"l": []any{map[string]any{"name": "i", "o": int64(1)}}}, "x", map[string]any{}},
		"w": mixed, "n": {int64(1), int64(5)},
	}
}

func randomSpec(random *rand.Rand) map[string]any {
	spec, all := map[string]any{}, values()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if random.IntN(3) > 0 && name != "n" {
			spec[name] = all[name][random.IntN(len(all[name]))]
		}
	}
	return spec
}

// randomChange changes up to two fields.
func randomChange(random *rand.Rand, spec map[string]any) map[string]any {
	all := values()
	names := slices.Sorted(maps.Keys(all))
	changed := maps.Clone(spec)
	for range random.IntN(3) {
		name := names[random.IntN(len(names))]
		if random.IntN(4) == 0 {
			delete(changed, name)
			continue
		}
		changed[name] = all[name][random.IntN(len(all[name]))]
	}
	return changed
}
