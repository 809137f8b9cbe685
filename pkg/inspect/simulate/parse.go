// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	ocmclusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/placement/ocm/scheduler"
)

// Input has the objects of a simulation.
type Input struct {
	Placements []placementv1beta1.PlacementObject
	Members    []clusterv1beta1.MemberCluster
	Bindings   []placementv1beta1.BindingObject
	// Chosen are Placements of Open Cluster Management; World is the input of their decisions.
	Chosen []ocmclusterv1beta1.Placement
	World  scheduler.World
	// Ignored counts the objects of other kinds, by kind.
	Ignored map[string]int
}

// Parse adds the objects of one file: YAML documents or JSON, including lists. Unknown fields are
// errors, as in strict field validation. name is the prefix of every error.
func (in *Input) Parse(name string, file io.Reader) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(file))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = in.add(document)
		}
		if err != nil {
			return fmt.Errorf("reading %s, document %d: %w", name, n, err)
		}
	}
}

func (in *Input) add(document []byte) error {
	text, err := untrusted.ToJSON(document, untrusted.File)
	if err != nil {
		return err
	}
	if bytes.Equal(text, []byte("null")) {
		return nil // Only comments.
	}
	var list struct {
		metav1.TypeMeta
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if list.Items == nil {
		return in.addObject(list.GroupVersionKind().GroupKind().String(), list.TypeMeta, text)
	}
	for i, item := range list.Items {
		var kind metav1.TypeMeta
		if err := json.Unmarshal(item, &kind); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		if err := in.addObject(kind.GroupVersionKind().GroupKind().String(), kind, item); err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
	}
	return nil
}

func (in *Input) addObject(groupKind string, kind metav1.TypeMeta, text []byte) error {
	switch groupKind {
	case "MemberCluster." + clusterv1beta1.GroupName:
		return in.addMember(text)
	case "ClusterResourcePlacement." + placementv1beta1.GroupName:
		return addTo(&in.Placements, &placementv1beta1.ClusterResourcePlacement{}, text)
	case "ResourcePlacement." + placementv1beta1.GroupName:
		return addTo(&in.Placements, &placementv1beta1.ResourcePlacement{}, text)
	case "ClusterResourceBinding." + placementv1beta1.GroupName:
		return addTo(&in.Bindings, &placementv1beta1.ClusterResourceBinding{}, text)
	case "ResourceBinding." + placementv1beta1.GroupName:
		return addTo(&in.Bindings, &placementv1beta1.ResourceBinding{}, text)
	}
	if known, err := in.addOCM(groupKind, text); known {
		return err
	}
	if kind.Kind == "" {
		return errors.New("it is not a Kubernetes object: kind is missing")
	}
	if in.Ignored == nil {
		in.Ignored = map[string]int{}
	}
	in.Ignored[kind.Kind]++
	return nil
}

func addTo[I any, O any](list *[]I, object O, text []byte) error {
	if err := untrusted.UnmarshalStrict(text, untrusted.File, object); err != nil {
		return err
	}
	*list = append(*list, any(object).(I))
	return nil
}

func (in *Input) addMember(text []byte) error {
	var member clusterv1beta1.MemberCluster
	if err := untrusted.UnmarshalStrict(text, untrusted.File, &member); err != nil {
		return err
	}
	in.Members = append(in.Members, member)
	return nil
}

// Moment is when the members were last seen: the latest heartbeat, or change of a ManagedCluster; zero
// if there is none.
func (in *Input) Moment() time.Time {
	latest := in.lastChange()
	for i := range in.Members {
		if agent := in.Members[i].Status.AgentStatusOf(clusterv1beta1.MemberAgent); agent != nil && agent.LastReceivedHeartbeat.After(latest) {
			latest = agent.LastReceivedHeartbeat.Time
		}
	}
	return latest
}
