// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	workv1 "fleetgate.io/fleetgate/pkg/apis/ocm/work/v1"
	"fleetgate.io/fleetgate/test/support/expect"
)

var _ = Describe("An add-on with a large template", func() {
	It("is divided between ManifestWorks, and no object moves between them", func(ctx SpecContext) {
		b := newBed(ctx, "edge")
		large := func(name string) string {
			return fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: agents}, data: {x: %q}}`, name, strings.Repeat("x", 190<<10))
		}
		b.templated(ctx, addonv1alpha1.AddOnTemplateSpec{}, nil, deployment, large("a"), large("b"), large("c"))
		b.selected(ctx, "p", "edge")
		names := func(ctx context.Context, suffix string) (all []string, err error) {
			work, err := b.work(ctx, "edge", suffix)
			for _, manifest := range work.Spec.Workload.Manifests {
				object := &unstructured.Unstructured{}
				err = errors.Join(err, object.UnmarshalJSON(manifest.Raw))
				all = append(all, object.GetName())
			}
			return all, err
		}
		Eventually(names).WithArguments(ctx, "-deploy-1").Should(Equal([]string{"c"}))
		Expect(names(ctx, "-deploy-0")).To(Equal([]string{"agent", "a", "b"}))
		b.applied(ctx, "edge", "-deploy-1", workv1.ManifestResourceMeta{})
		Consistently(b.conditions).WithArguments(ctx, "edge").ShouldNot(expect.HaveCondition("ManifestApplied", "True/AddonManifestApplied"))
		b.applied(ctx, "edge", "-deploy-0", workv1.ManifestResourceMeta{})
		Eventually(b.conditions).WithArguments(ctx, "edge").Should(And(expect.HaveCondition("ManifestApplied", "True/AddonManifestApplied"), expect.HaveCondition("Progressing", "False/Completed")))

		By("adding an object before the others, where another one was")
		template := &addonv1alpha1.AddOnTemplate{}
		Expect(hubClient.Get(ctx, client.ObjectKey{Name: b.name("template")}, template)).To(Succeed())
		manifests := template.Spec.AgentSpec.Workload.Manifests
		Expect(yaml.Unmarshal([]byte(large("first")), &manifests[1].RawExtension)).To(Succeed())
		template.Spec.AgentSpec.Workload.Manifests = []workv1.Manifest{manifests[1], manifests[0], manifests[3], manifests[2]}
		Expect(hubClient.Update(ctx, template)).To(Succeed())
		Eventually(names).WithArguments(ctx, "-deploy-0").Should(Equal([]string{"first", "agent", "b"}))
		Consistently(names).WithArguments(ctx, "-deploy-1").Should(Equal([]string{"c"}))

		By("removing the only object of a ManifestWork")
		second, err := b.work(ctx, "edge", "-deploy-1")
		Expect(err).NotTo(HaveOccurred())
		template.Spec.AgentSpec.Workload.Manifests = []workv1.Manifest{manifests[1], manifests[0], manifests[2]}
		Expect(hubClient.Update(ctx, template)).To(Succeed())
		Eventually(expect.Gone(ctx, hubClient, second)).Should(BeTrue())
		Expect(names(ctx, "-deploy-0")).To(Equal([]string{"first", "agent", "b"}))
	})
})
