// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

// answering is a client of a hub that has one answer, and what it was asked last.
func answering(t *testing.T, code int, text string) (c, plain client.WithWatch, asked *string) {
	t.Helper()
	asked = new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.URL.RequestURI()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err = newClient(&rest.Config{Host: server.URL}, scheme, benchMapper(scheme))
	if err != nil {
		t.Fatal(err)
	}
	return c, c.(*reader).WithWatch, asked
}

func TestReader_SameResultAsTypedClient(t *testing.T) {
	const member = `{"apiVersion":"cluster.kubernetes-fleet.io/v1beta1","kind":"MemberCluster","metadata":{"name":"m","creationTimestamp":"2026-01-31T12:00:00Z","managedFields":[{"manager":"a","fieldsV1":{"f:spec":{}}}]},"status":{"properties":{"node-count":{"value":"5","observationTime":"2026-01-31T12:00:00Z"}},"unknown":1}}`
	c, plain, asked := answering(t, http.StatusOK, member)
	reused := &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"of": "another"}}}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "m"}, reused); err != nil {
		t.Fatal(err)
	}
	path, want := *asked, &clusterv1beta1.MemberCluster{}
	if err := plain.Get(t.Context(), client.ObjectKey{Name: "m"}, want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, reused); diff != "" || path != *asked || want.Status.Properties["node-count"].Value != "5" {
		t.Errorf("asked %s, others %s (-want +got):\n%s", path, *asked, diff)
	}

	c, plain, asked = answering(t, http.StatusOK, `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"WorkList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"w","namespace":"n"}}]}`)
	options := []client.ListOption{client.InNamespace("n"), client.MatchingLabels{"a": "b"}, client.MatchingFields{"metadata.name": "w"}, client.Limit(3)}
	got, all := &placementv1beta1.WorkList{}, &placementv1beta1.WorkList{}
	if err := c.List(t.Context(), got, options...); err != nil {
		t.Fatal(err)
	}
	path = *asked
	if err := plain.List(t.Context(), all, options...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, got); diff != "" || path != *asked || len(got.Items) != 1 || !strings.HasPrefix(path, "/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/n/works?") {
		t.Errorf("asked %s, others %s (-want +got):\n%s", path, *asked, diff)
	}
}

func TestReader_GetsPlacementFromList(t *testing.T) {
	c, _, asked := answering(t, http.StatusOK, `{"kind":"ResourcePlacementList","items":[{"kind":"ResourcePlacement","metadata":{"name":"shop","namespace":"team"},"status":{"conditions":[{"type":"A"}]}}]}`)
	got := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"of": "another"}}}
	want := &placementv1beta1.ResourcePlacement{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"}, Status: placementv1beta1.PlacementStatus{Conditions: []metav1.Condition{{Type: "A"}}}}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "team", Name: "shop"}, got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || *asked != "/apis/placement.kubernetes-fleet.io/v1beta1/namespaces/team/resourceplacements?fieldSelector=metadata.name%3Dshop" {
		t.Errorf("asked %s (-want +got):\n%s", *asked, diff)
	}
	c, _, _ = answering(t, http.StatusOK, `{"kind":"ClusterResourcePlacementList","items":[]}`)
	if err := c.Get(t.Context(), client.ObjectKey{Name: "none"}, &placementv1beta1.ClusterResourcePlacement{}); !apierrors.IsNotFound(err) {
		t.Errorf("empty list: %v", err)
	}
	c, _, asked = answering(t, http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"cannot"}`)
	err := c.Get(t.Context(), client.ObjectKey{Name: "shop"}, &placementv1beta1.ClusterResourcePlacement{})
	if !apierrors.IsForbidden(err) || *asked != "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacements/shop" {
		t.Errorf("without the right to list: last request %s, error %v", *asked, err)
	}
}

// Of a hub to which others write all the time each further list waits until it is known to have
// the latest.
func TestReadUnavailable_UsesVersionOfTable(t *testing.T) {
	c, _, asked := answering(t, http.StatusOK, `{"kind":"ClusterResourcePlacement","metadata":{"name":"shop"}}`)
	read, err := (&Hub{WithWatch: c}).ReadUnavailable(t.Context(), []PlacementRow{{Name: "other", Available: true, version: "41"}, {Name: "shop", version: "42"}})
	if err != nil || len(read) != 1 || read[0].GetName() != "shop" || *asked != "/apis/placement.kubernetes-fleet.io/v1beta1/clusterresourceplacements/shop?resourceVersion=42" {
		t.Errorf("request %s, result %v: %v", *asked, read, err)
	}
}

func TestReader_ReturnsErrorOfHub(t *testing.T) {
	for name, test := range map[string]struct {
		code int
		text string
		is   func(error) bool
		want string
	}{
		"forbidden": {http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"user joe cannot list members"}`, apierrors.IsForbidden, "user joe cannot list members"},
		"not found": {http.StatusNotFound, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"no m"}`, apierrors.IsNotFound, "no m"},
		"a proxy's": {http.StatusBadGateway, `<html>`, IsTemporary, ""},
		"no JSON":   {http.StatusOK, `{"items":`, func(error) bool { return true }, "decoding the hub's response"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _ := answering(t, test.code, test.text)
			for _, err := range []error{c.List(t.Context(), &clusterv1beta1.MemberClusterList{}), c.Get(t.Context(), client.ObjectKey{Name: "m"}, &clusterv1beta1.MemberCluster{})} {
				if err == nil || !test.is(err) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
			}
		})
	}
}

func TestReader_ReportsClusterWithoutFleetKinds(t *testing.T) {
	c, _, _ := answering(t, http.StatusNotFound, "404 page not found\n")
	for _, list := range []client.ObjectList{&clusterv1beta1.MemberClusterList{}, &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "cluster.kubernetes-fleet.io/v1beta1", Kind: "MemberClusterList"}}} {
		if err := c.List(t.Context(), list); err == nil || !strings.Contains(err.Error(), "check that your context points to the hub of a fleet") {
			t.Errorf("listing %T: %v", list, err)
		}
	}
	h := &Hub{WithWatch: c}
	_, byMember := h.Member(t.Context(), "m")
	_, byPlacement := h.Placement(t.Context(), "shop")
	for _, err := range []error{byMember, byPlacement} {
		if err == nil || !strings.Contains(err.Error(), "check that your context points to the hub of a fleet") {
			t.Errorf("getting one object: %v", err)
		}
	}
}
