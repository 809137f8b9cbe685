// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package capz

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"fleetgate.io/fleetgate/pkg/webhook/immutability"
)

// informed tells of the pack once.
type informed struct{}

func (informed) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	policies, err := Policies()
	for _, policy := range policies {
		handler.OnAdd(policy, true)
	}
	return done{}, err
}

type done struct {
	cache.ResourceEventHandlerRegistration
}

func (done) HasSynced() bool { return true }

// BenchmarkAdmission posts reviews of an update of a managed control plane to the
// handler, in parallel, as an API server would: "reviews/s" is what the gateway
// answers on this machine, "cpu-ns/op" what one costs, which is the same on a busy one.
func BenchmarkAdmission(b *testing.B) {
	compiler, err := immutability.NewCompiler()
	if err != nil {
		b.Fatal(err)
	}
	policies := immutability.NewPolicies(compiler)
	if err := policies.Follow(informed{}); err != nil {
		b.Fatal(err)
	}
	webhook := (&immutability.Handler{Policies: policies, Clock: clock.RealClock{}}).Serving()
	body := review(b)
	b.Run("reviews", func(b *testing.B) {
		b.ReportAllocs()
		before := cpuTime(b)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				request := httptest.NewRequest(http.MethodPost, immutability.PathPrefix+"capz-azuremanagedcontrolplane", bytes.NewReader(body))
				request.Header.Set("Content-Type", "application/json")
				recorder := httptest.NewRecorder()
				webhook.ServeHTTP(recorder, request)
				if !bytes.Contains(recorder.Body.Bytes(), []byte(`"allowed":true`)) || bytes.Contains(recorder.Body.Bytes(), []byte("auditAnnotations")) {
					b.Errorf("not simply allowed: %s", recorder.Body)
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reviews/s")
		b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
	})
}

// cpuTime is what this process has used so far.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func review(b *testing.B) []byte {
	b.Helper()
	object := func(tag string) runtime.RawExtension {
		raw, err := yaml.YAMLToJSON([]byte(updated + "  additionalTags: {n: " + tag + "}\n"))
		if err != nil {
			b.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	dryRun := false
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Operation: admissionv1.Update, Name: "aks", Namespace: "default", DryRun: &dryRun,
			Kind:     metav1.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "AzureManagedControlPlane"},
			Resource: metav1.GroupVersionResource{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Resource: "azuremanagedcontrolplanes"},
			Object:   object("a"), OldObject: object("b"),
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	return body
}

const updated = `
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureManagedControlPlane
metadata: {name: aks, namespace: default, uid: u, labels: {cluster.x-k8s.io/cluster-name: aks}}
spec:
  identityRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureClusterIdentity, name: absent}
  subscriptionID: 00000000-0000-0000-0000-000000000000
  resourceGroupName: rg
  location: westeurope
  dnsServiceIP: 10.1.0.10
  networkPlugin: azure
  networkPolicy: azure
  version: v1.27.3
  virtualNetwork: {name: vnet, cidrBlock: 10.0.0.0/8, resourceGroup: rg, subnet: {name: subnet, cidrBlock: 10.240.0.0/16}}
  apiServerAccessProfile: {authorizedIPRanges: [1.2.3.0/24], enablePrivateCluster: true}
  addonProfiles: [{name: azurepolicy, enabled: true}]
  aadProfile: {managed: true, adminGroupObjectIDs: [g]}
  extensions: [{name: flux, extensionType: microsoft.flux, releaseTrain: Stable, scope: {scopeType: Cluster, releaseNamespace: flux}}]
`
