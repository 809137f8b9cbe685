// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnels_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apiserver/tunnels"
)

func partial(kind, namespace, name string, uid types.UID) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid},
	}
}

func TestRevocation_DisconnectsAgentWhoseIdentityIsDeleted(t *testing.T) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	accounts := schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	for name, resource := range map[string]struct {
		gvr    schema.GroupVersionResource
		object *metav1.PartialObjectMetadata
	}{
		"its Secret":  {secrets, partial("Secret", clusterv1beta1.MemberNamespace("one"), clusterv1beta1.AgentCredentialSecret, "1")},
		"its account": {accounts, partial("ServiceAccount", clusterv1beta1.MemberNamespace("one"), clusterv1beta1.AgentAccount, "1")},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			elsewhere := partial(resource.object.Kind, "default", resource.object.Name, "2")
			client := metadatafake.NewSimpleMetadataClient(scheme, resource.object, elsewhere)
			watching := make(chan struct{}, 8)
			client.PrependWatchReactor("*", watchStarted(client, watching))
			ctx, cancel := context.WithCancel(t.Context())
			gone, ended := make(chan string, 8), make(chan error, 1)
			go func() {
				ended <- (&tunnels.Revocation{Client: client, Disconnect: func(member string) { gone <- member }}).Run(ctx)
			}()
			<-watching
			<-watching
			for _, namespace := range []string{"default", resource.object.Namespace} {
				if err := client.Resource(resource.gvr).Namespace(namespace).Delete(ctx, resource.object.Name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if member := <-gone; member != "one" {
				t.Errorf("member %q was disconnected", member)
			}
			cancel()
			if err := <-ended; err != nil || len(gone) != 0 {
				t.Errorf("ended with %v, %d more were disconnected", err, len(gone))
			}
		})
	}
}

// watchStarted reports when the watch is established. Earlier events would be missed.
func watchStarted(client *metadatafake.FakeMetadataClient, started chan<- struct{}) clienttesting.WatchReactionFunc {
	return func(action clienttesting.Action) (bool, watch.Interface, error) {
		watcher, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		started <- struct{}{}
		return true, watcher, err
	}
}
