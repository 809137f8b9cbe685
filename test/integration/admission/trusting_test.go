// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/inspect/diagnose"
)

var _ = Describe("A gateway with placement.authorizeAuthors: false", Serial, func() {
	It("checks only authors of envelopes, reports the setting on the hub, and checks all authors when it is on again", func(ctx SpecContext) {
		author := newTenant(ctx)
		author.may(ctx, placementv1beta1.GroupName, "resourceplacements", "create")
		author.may(ctx, placementv1beta1.GroupName, "resourceoverrides", "create")
		author.may(ctx, placementv1beta1.GroupName, "resourceenvelopes", "create")
		author.has(ctx, secretNamed("token"))
		placing := func() error {
			return author.Create(ctx, author.placing(selecting("v1", "Secret", "token")), client.DryRunAll)
		}
		overriding := func() error {
			override := resourceOverride()
			override.Namespace = author.namespace
			override.Spec.ResourceSelectors = []placementv1beta1.ResourceSelector{{Group: "apps", Version: "v1", Kind: "Deployment", Name: "web"}}
			override.Spec.Policy = patching(patchOf("/spec/template/spec/hostPID"))
			return author.Create(ctx, override, client.DryRunAll)
		}
		refusedPlacement := beInvalid("spec.resourceSelectors[0]", `cannot get or place secrets "token"`)
		refusedOverride := beInvalid("spec.resourceSelectors[0]", `cannot update deployments.apps "web"`)
		Eventually(placing).Should(refusedPlacement)
		Eventually(overriding).Should(refusedOverride)

		restart := func(ctx context.Context, trusting bool) {
			gateway.stop()
			gateway.trustAuthors = trusting
			gateway.start()
			Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
		}
		restart(ctx, true)
		DeferCleanup(func(ctx SpecContext) {
			if gateway.trustAuthors {
				restart(ctx, false)
			}
		})
		Eventually(placing).Should(Succeed())
		Eventually(overriding).Should(Succeed())
		inside := envelope(enveloped("v1", "ConfigMap", author.namespace, "x", nil))
		inside.SetNamespace(author.namespace)
		Expect(author.Create(ctx, inside, client.DryRunAll)).To(beInvalid("data[a]", "cannot create or update configmaps"))
		page := &bytes.Buffer{}
		reporter := diagnose.Reporter{Hub: masters, Namespace: clusterv1beta1.SystemNamespace, Clock: clock.RealClock{}}
		Expect(reporter.Write(ctx, page)).To(Succeed())
		Expect(page.String()).To(ContainSubstring("author check disabled: the gateway runs with placement.authorizeAuthors: false"))

		By("enabling the check again")
		restart(ctx, false)
		Eventually(placing).Should(refusedPlacement)
		Eventually(overriding).Should(refusedOverride)
	})
})
