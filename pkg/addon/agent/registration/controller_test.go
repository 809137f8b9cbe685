// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	addonv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/addon/v1alpha1"
	"fleetgate.io/fleetgate/test/support/build"
)

func TestReconciler_NamesTheSubjectOfTokens(t *testing.T) {
	const signer = "kubernetes.io/kube-apiserver-client"
	certified := addonv1alpha1.Subject{User: "system:open-cluster-management:cluster:edge:addon:dns:agent:dns"}
	account := addonv1alpha1.Subject{User: "system:serviceaccount:edge:dns-agent"}
	for name, tc := range map[string]struct {
		driver, had addonv1alpha1.KubeClientDriver
		subject     addonv1alpha1.Subject
		// again is what the manager writes afterwards, if anything.
		again *addonv1alpha1.Subject
		want  addonv1alpha1.Subject
	}{
		"to a manager that wrote the subject of a certificate": {driver: addonv1alpha1.DriverToken, subject: certified, want: account},
		"after an agent that did not":                          {driver: addonv1alpha1.DriverToken, had: addonv1alpha1.DriverToken, subject: certified, want: account},
		"once, if the manager only knows certificates":         {driver: addonv1alpha1.DriverToken, subject: certified, again: &certified, want: certified},
		"not with certificates":                                {driver: addonv1alpha1.DriverCSR, had: addonv1alpha1.DriverToken, subject: account, want: account},
	} {
		t.Run(name, func(t *testing.T) {
			addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In("edge", "dns")}
			addOn.Status.KubeClientDriver = tc.had
			addOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: signer, Subject: tc.subject}}
			hub := fake.NewClientBuilder().WithScheme(build.Scheme(addonv1alpha1.AddToScheme)).WithObjects(addOn).WithStatusSubresource(addOn).Build()
			// Without a client for requests, a certificate that was requested is a panic.
			r := &Reconciler{
				Hub: hub, Cluster: "edge", Driver: tc.driver, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), named: sets.New[string](),
				Secrets: &Secrets{Member: fake.NewClientBuilder().WithScheme(build.Scheme(clientgoscheme.AddToScheme)).Build(), Namespace: "agent"},
			}
			reconcile := func() {
				t.Helper()
				if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(addOn)}); err != nil {
					t.Fatal(err)
				}
				if err := hub.Get(t.Context(), client.ObjectKeyFromObject(addOn), addOn); err != nil {
					t.Fatal(err)
				}
			}
			reconcile()
			if tc.again != nil {
				addOn.Status.Registrations[0].Subject = *tc.again
				if err := hub.Status().Update(t.Context(), addOn); err != nil {
					t.Fatal(err)
				}
			}
			reconcile()
			if diff := cmp.Diff(tc.want, addOn.Status.Registrations[0].Subject); diff != "" {
				t.Errorf("subject (-want +got)\n%s", diff)
			}
			if addOn.Status.KubeClientDriver != tc.driver {
				t.Errorf("driver is %q", addOn.Status.KubeClientDriver)
			}
		})
	}
}
