// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"maps"
	"strings"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// maxInfrastructure bounds the annotation in bytes: an object's annotations together may
// have 256 KiB.
const maxInfrastructure = 16 * 1024

// withInfrastructure are the properties that were reported and those that the hub knows
// from others than the agent: an agent cannot claim one of these. The time of one is when
// it was first seen with its value.
func withInfrastructure(reported properties, mc *clusterv1beta1.MemberCluster) properties {
	ours := func(name clusterv1beta1.PropertyName, _ clusterv1beta1.PropertyValue) bool {
		return strings.HasPrefix(string(name), clusterv1beta1.InfrastructurePrefix)
	}
	maps.DeleteFunc(reported, ours)
	known := infrastructureOf(mc)
	if len(known) > 0 && reported == nil {
		reported = properties{}
	}
	for name, value := range known {
		property := clusterv1beta1.PropertyValue{Value: value, ObservationTime: mc.CreationTimestamp}
		if shown, ok := mc.Status.Properties[name]; ok && shown.Value == value {
			property = shown
		}
		reported[name] = property
	}
	return reported
}

type properties = map[clusterv1beta1.PropertyName]clusterv1beta1.PropertyValue

// infrastructureOf reads the annotation. What is not of its form is left out: only the hub
// and administrators write there.
func infrastructureOf(mc *clusterv1beta1.MemberCluster) map[clusterv1beta1.PropertyName]string {
	annotation := mc.Annotations[clusterv1beta1.AnnotationProperties]
	var known map[clusterv1beta1.PropertyName]string
	if len(annotation) > maxInfrastructure || untrusted.UnmarshalJSON([]byte(annotation), untrusted.Object, &known) != nil {
		return nil
	}
	maps.DeleteFunc(known, func(name clusterv1beta1.PropertyName, _ string) bool {
		return !strings.HasPrefix(string(name), clusterv1beta1.InfrastructurePrefix)
	})
	return known
}
