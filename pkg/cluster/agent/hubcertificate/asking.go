// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hubcertificate

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	certificatesv1client "k8s.io/client-go/kubernetes/typed/certificates/v1"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// asking is a client that sets the name and label of a cluster on CertificateSigningRequests, by
// which the hub recognizes them.
type asking struct {
	kubernetes.Interface
	cluster string
}

// CertificatesV1 implements kubernetes.Interface.
func (a asking) CertificatesV1() certificatesv1client.CertificatesV1Interface {
	return askingGroup{CertificatesV1Interface: a.Interface.CertificatesV1(), cluster: a.cluster}
}

type askingGroup struct {
	certificatesv1client.CertificatesV1Interface
	cluster string
}

func (a askingGroup) CertificateSigningRequests() certificatesv1client.CertificateSigningRequestInterface {
	return requests{CertificateSigningRequestInterface: a.CertificatesV1Interface.CertificateSigningRequests(), cluster: a.cluster}
}

type requests struct {
	certificatesv1client.CertificateSigningRequestInterface
	cluster string
}

func (r requests) Create(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, options metav1.CreateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	csr.GenerateName = r.cluster + "-"
	metav1.SetMetaDataLabel(&csr.ObjectMeta, clusterv1.ClusterNameLabel, r.cluster)
	return r.CertificateSigningRequestInterface.Create(ctx, csr, options)
}
