// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1alpha1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/framework"
)

// DebugPath begins the path that explains a Placement's clusters; a namespace and a name follow. A
// POST explains the Placement in its body.
const DebugPath = "/debug/placements/"

// maxDebugged limits a posted Placement, in bytes.
const maxDebugged = 1 << 20

// Debugger serves DebugPath, in the format of Open Cluster Management's debugger. It reads
// everything from the hub for each request, so every replica gives the same answer.
type Debugger struct {
	Reader client.Reader
	Clock  clock.PassiveClock
	// May authorizes the caller to get the Placement, or to create one for a POST.
	May authorizer.UnconditionalAuthorizer
	// User returns the authenticated caller of a request's context.
	User func(context.Context) (user.Info, bool)
}

// debugged is the response; clients read these field names.
type debugged struct {
	Placement  *ocmclusterv1beta1.Placement `json:"placement,omitempty"`
	Filters    []debuggedFilter             `json:"filteredPipelineResults,omitempty"`
	Scorers    []debuggedScorer             `json:"prioritizeResults,omitempty"`
	Aggregated []debuggedScore              `json:"aggregatedScores,omitempty"`
	Error      string                       `json:"error,omitempty"`
}

type debuggedFilter struct {
	// Name is the names of the rules so far, separated by commas.
	Name     string   `json:"name"`
	Clusters []string `json:"filteredClusters"`
}

type debuggedScorer struct {
	Name   string           `json:"name"`
	Weight int64            `json:"weight"`
	Scores map[string]int64 `json:"scores"`
}

type debuggedScore struct {
	Cluster string `json:"clusterName"`
	Score   int64  `json:"score"`
}

// refused is an error with its status code.
type refused struct {
	code int
	text string
}

func (r *refused) Error() string { return r.text }

// ServeHTTP answers a GET about an existing Placement, or a POST about one that does not exist.
func (d *Debugger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	response, err := d.response(r)
	code := http.StatusOK
	if err != nil {
		code, response = http.StatusInternalServerError, &debugged{Error: err.Error()}
		if known := new(refused); errors.As(err, &known) {
			code = known.code
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(response) // A caller that has disconnected needs no response.
}

func (d *Debugger) response(r *http.Request) (*debugged, error) {
	namespace, name, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, DebugPath), "/")
	key := types.NamespacedName{Namespace: namespace, Name: name}
	switch {
	case r.Method == http.MethodGet && (!ok || namespace == "" || name == "" || strings.Contains(name, "/")):
		return nil, &refused{http.StatusBadRequest, "the path has to be " + DebugPath + "NAMESPACE/NAME"}
	case r.Method == http.MethodGet:
		return d.ofExisting(r.Context(), key)
	case r.Method == http.MethodPost:
		return d.ofPosted(r)
	}
	return nil, &refused{http.StatusMethodNotAllowed, "use GET for an existing Placement, or POST with a Placement in the body"}
}

func (d *Debugger) ofExisting(ctx context.Context, key types.NamespacedName) (*debugged, error) {
	if err := d.allowed(ctx, "get", key); err != nil {
		return nil, err
	}
	placement := &ocmclusterv1beta1.Placement{}
	if err := d.Reader.Get(ctx, key, placement); apierrors.IsNotFound(err) {
		return nil, &refused{http.StatusNotFound, fmt.Sprintf("placement '%s' not found", key.Name)}
	} else if err != nil {
		return nil, fmt.Errorf("reading Placement %s: %w", key, err)
	}
	return d.explain(ctx, placement)
}

func (d *Debugger) ofPosted(r *http.Request) (*debugged, error) {
	placement := &ocmclusterv1beta1.Placement{}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxDebugged+1))
	if err != nil || len(body) > maxDebugged {
		return nil, &refused{http.StatusBadRequest, fmt.Sprintf("request body too large, or broken off: at most %d bytes are read", maxDebugged)}
	}
	if err := untrusted.UnmarshalJSON(body, untrusted.File, placement); err != nil {
		return nil, &refused{http.StatusBadRequest, fmt.Sprintf("reading the Placement: %v", err)}
	}
	if placement.Namespace == "" {
		return nil, &refused{http.StatusBadRequest, "the Placement has no namespace"}
	}
	if err := d.allowed(r.Context(), "create", types.NamespacedName{Namespace: placement.Namespace}); err != nil {
		return nil, err
	}
	return d.explain(r.Context(), placement)
}

// allowed asks the hub. A caller without permission does not learn whether the Placement exists.
func (d *Debugger) allowed(ctx context.Context, verb string, key types.NamespacedName) error {
	caller, ok := d.User(ctx)
	if !ok {
		return &refused{http.StatusUnauthorized, "the request is not authenticated"}
	}
	decision, reason, err := d.May.Authorize(ctx, authorizer.AttributesRecord{
		User: caller, Verb: verb, Namespace: key.Namespace, Name: key.Name, ResourceRequest: true,
		APIGroup: ocmclusterv1beta1.GroupName, APIVersion: ocmclusterv1beta1.GroupVersion.Version, Resource: "placements",
	})
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return fmt.Errorf("asking the hub whether the caller may %s placements: %w", verb, err)
	}
	return &refused{http.StatusForbidden, fmt.Sprintf("user does not have permission to %s placements in namespace %s: %s", verb, key.Namespace, reason)}
}

func (d *Debugger) explain(ctx context.Context, placement *ocmclusterv1beta1.Placement) (*debugged, error) {
	world, err := d.readWorld(ctx, placement.Namespace)
	if err != nil {
		return nil, err
	}
	why, err := world.Explain(placement, d.Clock.Now())
	if err != nil {
		return nil, err
	}
	response := &debugged{Placement: &ocmclusterv1beta1.Placement{TypeMeta: placement.TypeMeta, Spec: placement.Spec}}
	response.Placement.ObjectMeta = metav1.ObjectMeta{
		Namespace: placement.Namespace, Name: placement.Name, Labels: placement.Labels, Annotations: placement.Annotations,
	}
	if why.Misconfigured.Status == metav1.ConditionTrue {
		response.Error = why.Misconfigured.Message
		return response, nil
	}
	for i := range why.Rules {
		response.Filters = append(response.Filters, debuggedFilter{Name: strings.Join(why.Rules[:i+1], ","), Clusters: append([]string{}, why.Passing(i)...)})
	}
	for i, weighted := range why.Scorers {
		scores := map[string]int64{}
		for _, places := range [][]framework.Place{why.Picked, why.Outscored} {
			for _, place := range places {
				scores[place.Cluster.Name] = place.Parts[i]
			}
		}
		response.Scorers = append(response.Scorers, debuggedScorer{Name: weighted.Scorer.Name(), Weight: weighted.Weight, Scores: scores})
	}
	for _, places := range [][]framework.Place{why.Picked, why.Outscored} {
		for _, place := range places {
			response.Aggregated = append(response.Aggregated, debuggedScore{Cluster: place.Cluster.Name, Score: place.Score})
		}
	}
	return response, nil
}

// readWorld reads everything that decisions in a namespace depend on.
func (d *Debugger) readWorld(ctx context.Context, namespace string) (*World, error) {
	var clusters clusterv1.ManagedClusterList
	var sets clusterv1beta2.ManagedClusterSetList
	var bindings clusterv1beta2.ManagedClusterSetBindingList
	var scores clusterv1alpha1.AddOnPlacementScoreList
	var decisions ocmclusterv1beta1.PlacementDecisionList
	for _, read := range []struct {
		into    client.ObjectList
		options []client.ListOption
	}{{&clusters, nil}, {&sets, nil}, {&bindings, []client.ListOption{client.InNamespace(namespace)}}, {&scores, nil}, {&decisions, nil}} {
		if err := d.Reader.List(ctx, read.into, read.options...); err != nil {
			return nil, fmt.Errorf("reading what Placements are decided from: %w", err)
		}
	}
	return &World{Clusters: clusters.Items, Sets: sets.Items, Bindings: bindings.Items, Scores: scores.Items, Decisions: decisions.Items}, nil
}
