// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"maps"
	"strings"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// maxInfrastructure limits the annotation, in bytes. All annotations of an object together can have 256
// KiB.
const maxInfrastructure = 16 * 1024

// withInfrastructure adds the hub's own properties of a member's infrastructure to the reported ones.
// An agent cannot report these names. The time of such a property is when its value was first seen.
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

// infrastructureOf reads the annotation. It skips invalid content, because only the hub and
// administrators write it.
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
