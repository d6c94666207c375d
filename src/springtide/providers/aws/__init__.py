"""Node groups of AWS: EC2 Auto Scaling groups and managed node groups of EKS.

They need boto3: `pip install './springtide[aws]'`, in the folder with the clone. It is imported with the first request.
"""

from __future__ import annotations

from springtide.apis.scheduled.node_group import AutoScalingGroupId, EksNodeGroupId, read_group_id
from springtide.cluster.client import Client
from springtide.providers.aws import auto_scaling, eks
from springtide.providers.aws.client import AwsClients
from springtide.providers.port import NodeGroup, Provider, ProviderError

__all__ = ["AwsProvider"]


class AwsProvider(Provider):
    """Scales groups with the credentials of the process."""

    types = (auto_scaling.TYPE, eks.TYPE)

    def __init__(self, clients: AwsClients | None = None) -> None:
        self._clients = clients or AwsClients()

    def group(self, type_: str, id_: str, client: Client) -> NodeGroup:
        """Return a group by its ARN, or an Auto Scaling group by its name."""
        found = read_group_id(type_, id_)
        if isinstance(found, AutoScalingGroupId):
            return auto_scaling.AutoScalingGroup(found, self._clients, client)
        if isinstance(found, EksNodeGroupId):
            return eks.EksNodeGroup(found, self._clients, client)
        raise ProviderError("InvalidId", f'"{id_}" does not name a group of type {type_}', retryable=False)

    def close(self) -> None:
        """Stop the threads; no further requests are possible."""
        self._clients.close()
