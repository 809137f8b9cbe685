// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package benchmark

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/webhook/intake"
	"fleetgate.io/fleetgate/test/support/fleet"
)

const (
	// burst reviews begin within a second, evenly.
	burst = 100
	// reviewed is the path of the placement webhook, which also checks the author, and review a
	// request body of the API server.
	reviewed = "/mutate-placement.kubernetes-fleet.io-v1beta1-clusterresourceplacement"
	review   = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","operation":"CREATE","name":"web",` +
		`"userInfo":{"username":"root","groups":["system:masters","system:authenticated"]},` +
		`"kind":{"group":"placement.kubernetes-fleet.io","version":"v1beta1","kind":"ClusterResourcePlacement"},` +
		`"resource":{"group":"placement.kubernetes-fleet.io","version":"v1beta1","resource":"clusterresourceplacements"},"object":{` +
		`"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ClusterResourcePlacement","metadata":{"name":"web"},"spec":{` +
		`"resourceSelectors":[{"group":"","version":"v1","kind":"Namespace","name":"shop"}],"policy":{"placementType":"PickN","numberOfClusters":3}}}}}`
)

// reviewing returns the measured paths of a review: through the API server's aggregation layer to
// the gateway, and directly. Latencies are those of each review at that rate.
func reviewing(b *testing.B, f *fleet.Fleet, hub client.Client) []variant {
	b.Helper()
	itself := f.Hub.Config()
	itself.QPS = -1
	itself.NextProtos = []string{"http/1.1"} // Webhook calls use HTTP/1.1.
	itself.Impersonate = rest.ImpersonationConfig{UserName: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	through, err := rest.HTTPClientFor(itself)
	if err != nil {
		b.Fatal(err)
	}
	port, ca := reviewsPort(b, hub)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	pki := filepath.Join(f.Dir, "hub", "pki")
	proxy, err := tls.LoadX509KeyPair(filepath.Join(pki, "front-proxy-client.crt"), filepath.Join(pki, "front-proxy-client.key"))
	if err != nil {
		b.Fatal(err)
	}
	direct := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: burst, TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "gateway.fleet-system.svc", Certificates: []tls.Certificate{proxy},
	}}}
	return []variant{
		reviewsBy("loopback", through, itself.Host+intake.AggregatedPath(reviewed), nil),
		reviewsBy("direct", direct, fmt.Sprintf("https://127.0.0.1:%d%s", port, intake.AggregatedPath(reviewed)),
			http.Header{"X-Remote-User": {user.APIServerUser}, "X-Remote-Group": {user.SystemPrivilegedGroup}}),
	}
}

// reviewsPort returns the address to which the hub's aggregation layer forwards reviews, and its
// CA.
func reviewsPort(b *testing.B, hub client.Client) (int64, []byte) {
	b.Helper()
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	key := client.ObjectKey{Name: intake.GroupVersion.Version + "." + intake.GroupVersion.Group}
	if err := hub.Get(b.Context(), key, service); err != nil {
		b.Fatal(err)
	}
	port, _, err := unstructured.NestedInt64(service.Object, "spec", "service", "port")
	if err != nil {
		b.Fatal(err)
	}
	bundle, _, err := unstructured.NestedString(service.Object, "spec", "caBundle")
	if err != nil {
		b.Fatal(err)
	}
	var ca []byte
	if err := json.Unmarshal([]byte(`"`+bundle+`"`), &ca); err != nil {
		b.Fatal(err)
	}
	return port, ca
}

// reviewsBy measures the reviews of one second, each started on time. Its result is the mean time
// of a review.
func reviewsBy(name string, by *http.Client, url string, headers http.Header) variant {
	w := variant{name: name, figures: map[string]float64{}}
	var all []time.Duration
	w.do = func(ctx context.Context) (time.Duration, error) {
		took, failures := make([]time.Duration, burst), make([]error, burst)
		var group sync.WaitGroup
		ticker := time.NewTicker(time.Second / burst)
		defer ticker.Stop()
		for i := range burst {
			<-ticker.C
			group.Go(func() {
				took[i], failures[i] = timed(func(ctx context.Context) error { return ask(ctx, by, url, headers) })(ctx)
			})
		}
		group.Wait()
		var sum time.Duration
		for _, t := range took {
			sum += t
		}
		all = append(all, took...)
		sorted := slices.Sorted(slices.Values(all))
		w.figures["p50-ms"] = sorted[len(sorted)/2].Seconds() * 1000
		w.figures["p99-ms"] = sorted[len(sorted)*99/100].Seconds() * 1000
		return sum / burst, errors.Join(failures...)
	}
	return w
}

func ask(ctx context.Context, by *http.Client, url string, headers http.Header) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte(review)))
	if err != nil {
		return err
	}
	request.Header = headers.Clone()
	if request.Header == nil {
		request.Header = http.Header{}
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := by.Do(request)
	if err != nil {
		return err
	}
	var answer admissionv1.AdmissionReview
	err = json.NewDecoder(response.Body).Decode(&answer)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("%s: %w", response.Status, err)
	}
	if answer.Response == nil || !answer.Response.Allowed {
		return fmt.Errorf("not allowed: %s: %v", response.Status, answer.Response)
	}
	return nil
}
