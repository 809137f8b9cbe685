// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// standIn is a member's API server in as far as the golden looks need one: it keeps
// objects, counts versions and UIDs from one, and writes down who asked for what. It
// does nothing else with a write; suites on real API servers test that.
type standIn struct {
	mu       sync.Mutex
	objects  map[string]*unstructured.Unstructured // by path
	versions int
	uids     int
	log      []string
	// answer rejects a request unless it returns nil.
	answer func(verb, path string) *apierrors.StatusError
}

func newStandIn() *standIn {
	return &standIn{objects: map[string]*unstructured.Unstructured{}, versions: 100}
}

// served lists the resources of the member besides those that its objects define.
var served = map[string][]metav1.APIResource{
	"v1": {
		{Name: "namespaces", Kind: "Namespace"}, {Name: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Name: "secrets", Kind: "Secret", Namespaced: true}, {Name: "services", Kind: "Service", Namespaced: true},
	},
	"apps/v1":                               {{Name: "deployments", Kind: "Deployment", Namespaced: true}},
	"rbac.authorization.k8s.io/v1":          {{Name: "clusterroles", Kind: "ClusterRole"}},
	"apiextensions.k8s.io/v1":               {{Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}},
	"placement.kubernetes-fleet.io/v1beta1": {{Name: "appliedworks", Kind: "AppliedWork"}},
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(request.Body)
	segments := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if answer, is := s.discovery(segments); is {
		reply(w, http.StatusOK, answer)
		return
	}
	answer, err := s.serve(request, segments, body)
	code := http.StatusOK
	if err != nil {
		code, answer = int(err.ErrStatus.Code), err.ErrStatus
	}
	s.note(request, body, code)
	reply(w, code, answer)
}

func reply(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

// note records a request: client, path and body.
func (s *standIn) note(request *http.Request, body []byte, code int) {
	line := request.Method + " " + request.URL.Path
	if query := request.URL.Query().Encode(); query != "" {
		line += "?" + query
	}
	if request.Method == http.MethodPatch {
		line += " " + strings.TrimSuffix(strings.TrimPrefix(request.Header.Get("Content-Type"), "application/"), "+json")
	}
	if user := request.Header.Get("Impersonate-User"); user != "" {
		line += " as " + user
	}
	if len(body) > 0 {
		line += " " + hashOf(body)
	}
	s.log = append(s.log, fmt.Sprintf("%s -> %d", line, code))
}

func hashOf(body []byte) string {
	sum := sha256.Sum256([]byte(strings.TrimSpace(string(body))))
	return hex.EncodeToString(sum[:6])
}

// discovery answers discovery requests. A CustomResourceDefinition is served as soon as it exists.
func (s *standIn) discovery(segments []string) (any, bool) {
	lists := maps.Clone(served)
	for path, object := range s.objects {
		if strings.Contains(path, "/customresourcedefinitions/") {
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
			lists[group+"/v1"] = []metav1.APIResource{{Name: plural, Kind: kind}}
		}
	}
	switch {
	case len(segments) == 1 && segments[0] == "api":
		return metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}, true
	case len(segments) == 1 && segments[0] == "apis":
		groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, version := range slices.Sorted(maps.Keys(lists)) {
			if group, v, found := strings.Cut(version, "/"); found {
				one := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: v}
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{one}, PreferredVersion: one})
			}
		}
		return groups, true
	case len(segments) == 2 && segments[0] == "apis":
		for version := range lists {
			if group, v, _ := strings.Cut(version, "/"); group == segments[1] {
				one := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: v}
				return metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: group,
					Versions: []metav1.GroupVersionForDiscovery{one}, PreferredVersion: one}, true
			}
		}
	case len(segments) == 2 && segments[0] == "api", len(segments) == 3 && segments[0] == "apis":
		version := strings.Join(segments[1:], "/")
		if resources, is := lists[version]; is {
			return metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version, APIResources: resources}, true
		}
	}
	return nil, false
}

func (s *standIn) serve(request *http.Request, segments []string, body []byte) (any, *apierrors.StatusError) {
	path := strings.TrimSuffix("/"+strings.Join(segments, "/"), "/status")
	if s.answer != nil {
		if refused := s.answer(request.Method, path); refused != nil {
			return nil, refused
		}
	}
	name := segments[len(segments)-1]
	live, there := s.objects[path]
	switch {
	case request.Method == http.MethodPost:
		return s.create(path, body)
	case request.Method == http.MethodGet && isCollection(segments):
		return map[string]any{"kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": []any{}}, nil
	case request.Method == http.MethodPatch && request.Header.Get("Content-Type") == string(types.ApplyYAMLPatchType):
		return s.apply(request, path, body)
	case !there:
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: segments[len(segments)-2]}, name)
	case request.Method == http.MethodDelete:
		return s.remove(path, live, body)
	case request.Method == http.MethodPut:
		wanted := &unstructured.Unstructured{}
		if err := json.Unmarshal(body, &wanted.Object); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		after := live.DeepCopy()
		after.Object["status"] = wanted.Object["status"]
		return s.store(path, live, after, wanted.GetResourceVersion(), false)
	case request.Method == http.MethodPatch:
		return s.patch(request, path, live, body)
	}
	return live, nil
}

// isCollection distinguishes /apis/<group>/<version>/<resource> from the path of one object.
func isCollection(segments []string) bool {
	if segments[0] == "api" {
		return len(segments)%2 == 1
	}
	return len(segments)%2 == 0
}

func (s *standIn) create(path string, body []byte) (any, *apierrors.StatusError) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &object.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	path += "/" + object.GetName()
	if s.objects[path] != nil {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{}, object.GetName())
	}
	return s.put(path, object), nil
}

// put stores a new object.
func (s *standIn) put(path string, object *unstructured.Unstructured) *unstructured.Unstructured {
	s.uids++
	s.versions++
	object.SetUID(types.UID("uid-" + strconv.Itoa(s.uids)))
	object.SetGeneration(1)
	object.SetResourceVersion(strconv.Itoa(s.versions))
	s.objects[path] = object
	return object
}

// store stores a changed object. An unchanged one keeps its resourceVersion.
func (s *standIn) store(path string, live, after *unstructured.Unstructured, pinned string, dry bool) (any, *apierrors.StatusError) {
	if pinned != "" && pinned != live.GetResourceVersion() {
		return nil, apierrors.NewConflict(schema.GroupResource{}, live.GetName(), fmt.Errorf("it was changed"))
	}
	after.SetResourceVersion(live.GetResourceVersion())
	if jsonOf(after) != jsonOf(live) {
		if specOf(after) != specOf(live) {
			after.SetGeneration(live.GetGeneration() + 1)
		}
		if !dry {
			s.versions++
			after.SetResourceVersion(strconv.Itoa(s.versions))
		}
	}
	if !dry {
		s.objects[path] = after
		if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 {
			delete(s.objects, path)
		}
	}
	return after, nil
}

func jsonOf(object *unstructured.Unstructured) string {
	text, _ := json.Marshal(object.Object)
	return string(text)
}

func specOf(object *unstructured.Unstructured) string {
	copied := object.DeepCopy()
	delete(copied.Object, "status")
	delete(copied.Object, "metadata")
	return jsonOf(copied)
}

// apply is a server-side apply without managers: it merges.
func (s *standIn) apply(request *http.Request, path string, body []byte) (any, *apierrors.StatusError) {
	live := s.objects[path]
	if live == nil {
		return s.create(path[:strings.LastIndex(path, "/")], body)
	}
	return s.merge(path, live, body, request.URL.Query().Get("dryRun") != "", jsonpatch.MergePatch)
}

func (s *standIn) patch(request *http.Request, path string, live *unstructured.Unstructured, body []byte) (any, *apierrors.StatusError) {
	switch types.PatchType(request.Header.Get("Content-Type")) {
	case types.StrategicMergePatchType:
		known, err := scheme.Scheme.New(live.GroupVersionKind())
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return s.merge(path, live, body, false, func(document, patch []byte) ([]byte, error) {
			return strategicpatch.StrategicMergePatch(document, patch, known)
		})
	case types.JSONPatchType:
		return s.merge(path, live, body, false, func(document, patch []byte) ([]byte, error) {
			decoded, err := jsonpatch.DecodePatch(patch)
			if err != nil {
				return nil, err
			}
			return decoded.Apply(document)
		})
	}
	return s.merge(path, live, body, false, jsonpatch.MergePatch)
}

func (s *standIn) merge(path string, live *unstructured.Unstructured, body []byte, dry bool, merge func(document, patch []byte) ([]byte, error)) (any, *apierrors.StatusError) {
	text, err := merge([]byte(jsonOf(live)), body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &after.Object); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.store(path, live, after, after.GetResourceVersion(), dry)
}

// remove deletes an object. With foreground deletion it stays until the test collects it.
func (s *standIn) remove(path string, live *unstructured.Unstructured, body []byte) (any, *apierrors.StatusError) {
	options := &metav1.DeleteOptions{}
	if err := json.Unmarshal(body, options); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if p := options.Preconditions; p != nil && (p.UID != nil && *p.UID != live.GetUID() ||
		p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion()) {
		return nil, apierrors.NewConflict(schema.GroupResource{}, live.GetName(), fmt.Errorf("it was changed"))
	}
	after := live.DeepCopy()
	if options.PropagationPolicy != nil && *options.PropagationPolicy == metav1.DeletePropagationForeground {
		after.SetFinalizers(append(after.GetFinalizers(), metav1.FinalizerDeleteDependents))
	}
	if len(after.GetFinalizers()) == 0 {
		delete(s.objects, path)
		return live, nil
	}
	after.SetDeletionTimestamp(&early)
	return s.store(path, live, after, "", false)
}
