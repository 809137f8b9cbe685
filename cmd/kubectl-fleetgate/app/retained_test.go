// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

func TestParseRetained(t *testing.T) {
	for text, want := range map[string]string{
		"pvc/data": "persistentvolumeclaims data", "Namespace/shop": "namespaces shop", "persistentvolumes/v": "persistentvolumes v",
		"crd/widgets.example.org": "customresourcedefinitions widgets.example.org",
		"configmap/c":             "", "shop": "", "pvc/": "",
	} {
		kind, name, err := parseRetained(text)
		got := kind.Resource.Resource + " " + name
		if err != nil {
			got = ""
		}
		if got != want {
			t.Errorf("%s: got %q and %v, want %q", text, got, err, want)
		}
	}
}

// retainingMember answers as the proxy to a member: its claims are in two pages.
func retainingMember(t *testing.T, patches *[]string) *overview.Hub {
	t.Helper()
	claim := func(name, annotations string) string {
		return `{"metadata":{"namespace":"shop","name":"` + name + `","resourceVersion":"7","annotations":{` + annotations + `}}}`
	}
	const marks = `"fleetgate.io/retained":"its placement\u001b moved","fleetgate.io/retained-from":"shop"`
	list := func(next string, items ...string) string {
		return `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"continue":"` + next + `"},"items":[` + strings.Join(items, ",") + `]}`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		at, answer := r.URL.Path[strings.Index(r.URL.Path, "/proxy")+len("/proxy"):], list("")
		switch {
		case strings.Contains(r.URL.Path, "/silent/"):
			http.Error(w, "no tunnel", http.StatusServiceUnavailable)
			return
		case r.Method == http.MethodPatch:
			var body json.RawMessage
			_ = json.NewDecoder(r.Body).Decode(&body)
			*patches = append(*patches, at+" "+string(body))
			answer = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"data"}}`
		case at == "/api/v1/persistentvolumeclaims" && r.URL.Query().Get("continue") == "":
			answer = list("more", claim("cache", ""))
		case at == "/api/v1/persistentvolumeclaims":
			answer = list("", claim("data", marks))
		case strings.HasSuffix(at, "/persistentvolumeclaims/data"):
			answer = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` + claim("data", marks)[1:]
		case strings.HasSuffix(at, "/persistentvolumeclaims/cache"):
			answer = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",` + claim("cache", "")[1:]
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return &overview.Hub{Config: &rest.Config{Host: server.URL}}
}

func TestRetained_ListsAllPagesAndNamesMembersThatDoNotAnswer(t *testing.T) {
	found, failures := retainingMember(t, nil).Retained(t.Context(), []string{"member-1", "silent"})
	if len(failures) != 1 || failures["silent"] == nil {
		t.Errorf("failures: %v", failures)
	}
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	if err := (&session{IOStreams: streams}).printRetained(found, "", true); err != nil {
		t.Fatal(err)
	}
	want := []string{"member-1", "PersistentVolumeClaim", "shop", "data", "shop", "its"}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 || strings.Join(strings.Fields(lines[1])[:6], " ") != strings.Join(want, " ") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("printed %q", out)
	}
}

func TestRelease_RemovesTheMarksOfARetainedObjectOnly(t *testing.T) {
	var patches []string
	h := retainingMember(t, &patches)
	kind, _, err := parseRetained("pvc/data")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Release(t.Context(), "member-1", kind, "shop", "data"); err != nil {
		t.Fatal(err)
	}
	want := `/api/v1/namespaces/shop/persistentvolumeclaims/data {"metadata":{"annotations":{"fleetgate.io/retained":null,"fleetgate.io/retained-from":null},"resourceVersion":"7"}}`
	if len(patches) != 1 || patches[0] != want {
		t.Errorf("patches: %q", patches)
	}
	if err := h.Release(t.Context(), "member-1", kind, "shop", "cache"); err == nil || !strings.Contains(err.Error(), "is not retained") || len(patches) != 1 {
		t.Errorf("releasing an object that is not retained: %v, %q", err, patches)
	}
}
