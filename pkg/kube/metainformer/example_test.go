// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package metainformer_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/cache"

	"fleetgate.io/fleetgate/pkg/kube/metainformer"
)

func ExampleSet() {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}})
	seen := make(chan string, 1)
	watches := metainformer.Begin(context.Background(), client, metainformer.Options{
		Keep: func(object any) (any, error) { return object, nil },
		Handler: func(_ context.Context, resource schema.GroupVersionResource) cache.ResourceEventHandler {
			return cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
				seen <- resource.Resource + " " + object.(metav1.Object).GetName()
			}}
		},
	})
	defer watches.End()
	if err := watches.Need(map[schema.GroupVersionResource]struct{}{{Version: "v1", Resource: "configmaps"}: {}}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-seen)
	// Output: configmaps a
}
