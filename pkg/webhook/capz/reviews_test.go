// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package capz

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
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
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// BenchmarkAdmission has the handler review writes of a managed control plane for the
// largest policy of the pack, 38 fields and 40 conditions, on all cores: an update of
// one tag, a creation, and an update that breaks many rules. "posted" is the update as
// an API server would send it, over TLS on one connection for each core, client and
// server in this process. "reviews/s" is what comes out on this machine, "cpu-ns/op"
// what one costs, which is nearly the same on a busy one.
func BenchmarkAdmission(b *testing.B) {
	compiler, err := immutability.NewCompiler()
	if err != nil {
		b.Fatal(err)
	}
	policies := immutability.NewPolicies(compiler)
	if err := policies.Follow(informed{}); err != nil {
		b.Fatal(err)
	}
	webhook := (&immutability.Handler{Policies: policies, Clock: clock.RealClock{}, Writer: nobody{}}).Serving()
	update, create, change := review(b, "{n: a}", "{n: b}"), review(b, "", "{n: b}"), review(b, "{n: a}", "{n: b}")
	change.OldObject.Raw = bytes.ReplaceAll(change.OldObject.Raw, []byte(`"azure"`), []byte(`"kubenet"`))
	change.OldObject.Raw = bytes.ReplaceAll(change.OldObject.Raw, []byte(`"westeurope"`), []byte(`"eastus"`))
	for name, asked := range map[string]struct {
		review  *admissionv1.AdmissionRequest
		allowed bool
	}{"update": {update, true}, "create": {create, true}, "refused": {change, false}} {
		body := encoded(b, asked.review)
		b.Run("reviews/"+name, func(b *testing.B) {
			measured(b, asked.allowed, func() (io.Reader, error) {
				request := httptest.NewRequest(http.MethodPost, largest, bytes.NewReader(body))
				request.Header.Set("Content-Type", "application/json")
				recorder := httptest.NewRecorder()
				webhook.ServeHTTP(recorder, request)
				return recorder.Body, nil
			})
		})
	}
	server := httptest.NewTLSServer(webhook)
	b.Cleanup(server.Close)
	body := encoded(b, update)
	b.Run("posted/update", func(b *testing.B) {
		measured(b, true, func() (io.Reader, error) {
			response, err := server.Client().Post(server.URL+largest, "application/json", bytes.NewReader(body))
			if err != nil {
				return nil, err
			}
			answer, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			return bytes.NewReader(answer), err
		})
	})
}

// largest is where the policy with most rules is asked.
const largest = immutability.PathPrefix + "capz-azuremanagedcontrolplane"

// nobody may bypass a policy.
type nobody struct{ client.Writer }

func (nobody) Create(context.Context, client.Object, ...client.CreateOption) error { return nil }

// measured asks on all cores, and makes sure of the answers.
func measured(b *testing.B, allowed bool, ask func() (io.Reader, error)) {
	b.ReportAllocs()
	before := cpuTime(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			answer, err := ask()
			if err != nil {
				b.Error(err)
				return
			}
			var review admissionv1.AdmissionReview
			if err := json.NewDecoder(answer).Decode(&review); err != nil || review.Response.Allowed != allowed || len(review.Response.AuditAnnotations) > 0 {
				b.Errorf("got %+v, %v", review.Response, err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reviews/s")
	b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
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

// review is an update of the tags, or a creation, of a control plane.
func review(b *testing.B, older, newer string) *admissionv1.AdmissionRequest {
	b.Helper()
	object := func(tags string) runtime.RawExtension {
		raw, err := yaml.YAMLToJSON([]byte(updated + "  additionalTags: " + tags + "\n"))
		if err != nil {
			b.Fatal(err)
		}
		return runtime.RawExtension{Raw: raw}
	}
	dryRun := false
	request := &admissionv1.AdmissionRequest{
		UID: "u", Operation: admissionv1.Create, Name: "aks", Namespace: "default", DryRun: &dryRun,
		Kind:     metav1.GroupVersionKind{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Kind: "AzureManagedControlPlane"},
		Resource: metav1.GroupVersionResource{Group: "infrastructure.cluster.x-k8s.io", Version: "v1beta1", Resource: "azuremanagedcontrolplanes"},
		Object:   object(newer),
	}
	if older != "" {
		request.Operation, request.OldObject = admissionv1.Update, object(older)
	}
	return request
}

func encoded(b *testing.B, request *admissionv1.AdmissionRequest) []byte {
	b.Helper()
	body, err := json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
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
