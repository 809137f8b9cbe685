// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	certificatesv1client "k8s.io/client-go/kubernetes/typed/certificates/v1"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

func TestReconciler_StoresTheIssuedCertificateWhenTheNamespaceExists(t *testing.T) {
	addOn := &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: build.In("edge", "dns")}
	addOn.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/dns"}}
	addOn.Status.Namespace = "agents"
	hub := fake.NewClientBuilder().WithScheme(build.Scheme(addonv1alpha1.AddToScheme)).WithObjects(addOn).WithStatusSubresource(addOn).Build()
	exists := false
	member := fake.NewClientBuilder().WithScheme(build.Scheme(clientgoscheme.AddToScheme)).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if object.GetNamespace() == "agents" && !exists {
				return apierrors.NewNotFound(corev1.Resource("namespaces"), "agents")
			}
			return c.Create(ctx, object, options...)
		},
	}).Build()
	requested := 0
	clientset := kubernetesfake.NewClientset()
	clientset.PrependReactor("create", "certificatesigningrequests", func(action clienttesting.Action) (bool, runtime.Object, error) {
		requested++
		csr := action.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
		csr.Name = fmt.Sprint("request-", requested)
		csr.Status.Certificate = issued(t, csr.Spec.Request)
		return false, nil, nil
	})
	r := &Reconciler{
		Hub: hub, Cluster: "edge", Driver: addonv1alpha1.DriverToken, Clock: clocktesting.NewFakePassiveClock(time.Now()), Secrets: &Secrets{Member: member, Namespace: "agent"},
		requests: requests{cluster: "edge", now: time.Now, pending: map[types.NamespacedName]request{}, client: func(context.Context) (certificatesv1client.CertificateSigningRequestInterface, error) {
			return clientset.CertificatesV1().CertificateSigningRequests(), nil
		}},
	}
	reconcile := func() *corev1.Secret {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(addOn)}); err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{}
		if err := member.Get(t.Context(), client.ObjectKey{Namespace: "agents", Name: "dns-example.com-dns-client-cert"}, secret); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return secret
	}
	for range 3 {
		if secret := reconcile(); len(secret.Data) > 0 {
			t.Fatal("the Secret exists without its namespace")
		}
	}
	exists = true
	if secret := reconcile(); len(secret.Data[corev1.TLSCertKey]) == 0 {
		t.Errorf("the Secret has %v", slices.Sorted(maps.Keys(secret.Data)))
	}
	if requested != 1 {
		t.Errorf("requested %d certificates", requested)
	}
}

// issued is a certificate for a request.
func issued(t *testing.T, content []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(content)
	of, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: of.Subject, NotBefore: now, NotAfter: now.Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, of.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
