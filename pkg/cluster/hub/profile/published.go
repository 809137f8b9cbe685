// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	multiclusterv1alpha1 "fleetgate.io/fleetgate/pkg/apis/multicluster/v1alpha1"
)

// maxValue is the maximum length of a property's value in a ClusterProfile. Longer ones, such as
// certificates, are left out.
const maxValue = 1024

// published records what a profile has from its member. Values of others stay, and values that the
// member no longer has are removed.
type published struct {
	Labels     []string `json:"labels,omitempty"`
	Properties []string `json:"properties,omitempty"`
}

// publishedIn reads the annotation; an invalid one counts as none.
func publishedIn(profile *multiclusterv1alpha1.ClusterProfile) published {
	var had published
	_ = json.Unmarshal([]byte(profile.Annotations[multiclusterv1alpha1.AnnotationPublished]), &had)
	return had
}

// publishLabels copies the labels of the member to its profile, and records what was published. A
// removed property stays recorded until it has been removed from the status.
func publishLabels(profile *multiclusterv1alpha1.ClusterProfile, mc *clusterv1beta1.MemberCluster) error {
	had := publishedIn(profile)
	for _, name := range had.Labels {
		if _, still := mc.Labels[name]; !still {
			delete(profile.Labels, name)
		}
	}
	for name, value := range mc.Labels {
		metav1.SetMetaDataLabel(&profile.ObjectMeta, name, value)
	}
	shown := propertiesOf(mc)
	now := published{Labels: slices.Sorted(maps.Keys(mc.Labels)), Properties: slices.Collect(maps.Keys(shown))}
	for _, property := range profile.Status.Properties {
		if _, still := shown[property.Name]; !still && slices.Contains(had.Properties, property.Name) {
			now.Properties = append(now.Properties, property.Name)
		}
	}
	slices.Sort(now.Properties)
	text, err := json.Marshal(now)
	if err != nil {
		return fmt.Errorf("preparing ClusterProfile %q: %w", profile.Name, err)
	}
	metav1.SetMetaDataAnnotation(&profile.ObjectMeta, multiclusterv1alpha1.AnnotationPublished, string(text))
	return nil
}

// propertiesOf are the member's properties that a profile shows. It leaves out frequently changing
// ones, because consumers read a whole profile whenever it is written. It also leaves out the
// address of the member's API server, because clients should go through the hub.
func propertiesOf(mc *clusterv1beta1.MemberCluster) map[string]string {
	shown := map[string]string{}
	for name, property := range mc.Status.Properties {
		if name.IsRestless() || name == clusterv1beta1.PropertyEntrypoint || name == clusterv1beta1.PropertyCertificateAuthority ||
			property.Value == "" || len(property.Value) > maxValue {
			continue
		}
		shown[string(name)] = property.Value
	}
	return shown
}

// desiredProperties are those of the member, and existing ones that were never the member's. The
// time is when a value was first seen; otherwise each report would write the profile.
func desiredProperties(present []multiclusterv1alpha1.Property, mc *clusterv1beta1.MemberCluster, had []string) []multiclusterv1alpha1.Property {
	shown := propertiesOf(mc)
	var wanted []multiclusterv1alpha1.Property
	for _, property := range present {
		value, ours := shown[property.Name]
		switch {
		case ours && value == property.Value, !ours && !slices.Contains(had, property.Name):
			wanted = append(wanted, property)
			delete(shown, property.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		observed := mc.Status.Properties[clusterv1beta1.PropertyName(name)].ObservationTime
		property := multiclusterv1alpha1.Property{Name: name, Value: shown[name]}
		if !observed.IsZero() {
			property.LastObservedTime = &observed
		}
		wanted = append(wanted, property)
	}
	slices.SortFunc(wanted, func(a, b multiclusterv1alpha1.Property) int { return strings.Compare(a.Name, b.Name) })
	return wanted
}

// shown is everything that a profile shows of a member.
type shown struct {
	Labels, Properties map[string]string
	Health, Joined     metav1.Condition
}

func shownOf(mc *clusterv1beta1.MemberCluster) shown {
	return shown{Labels: mc.Labels, Properties: propertiesOf(mc), Health: healthOf(mc), Joined: joinedOf(mc)}
}
